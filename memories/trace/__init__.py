"""Recorded model calls and tool results: as data, as entries of a session, and read."""
