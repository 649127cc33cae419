"""litellm, imported quietly and at one place. Private."""
