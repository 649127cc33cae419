"""What the protocols of user interfaces have in common."""
