"""The command ``sessions``: ``commands`` has its commands, each other module what one does."""
