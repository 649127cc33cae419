"""Several brains that work on one task."""
