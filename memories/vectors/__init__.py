"""Vectors of messages: embedding them, and keeping them in Chroma. Private."""
