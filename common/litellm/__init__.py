"""Import litellm in one place and without side effects."""
