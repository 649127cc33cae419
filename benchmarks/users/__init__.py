"""What a user's memory withstands: changes, attacks, honest statements, and what it costs."""
