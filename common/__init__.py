"""What every room needs and no model sees: text, names, secrets, the event loop."""
