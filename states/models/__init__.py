"""The model port, and models by name."""
