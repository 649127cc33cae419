"""The built-in nets."""
