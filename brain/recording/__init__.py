"""Recorded runs: read, replayed, compared, and shown step by step."""
