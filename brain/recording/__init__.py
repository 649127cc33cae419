"""Recorded runs: read, replayed and compared."""
