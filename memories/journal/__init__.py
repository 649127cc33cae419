"""Journals: append-only storage beneath a memory, in RAM, on disk or on a server."""
