"""LiteLLM behind the model port."""
