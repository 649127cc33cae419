"""What is known about a user, over all conversations."""
