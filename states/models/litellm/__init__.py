"""LiteLLM behind the model port. Private."""
