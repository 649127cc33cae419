"""Vectors of messages: embedding them and storing them in Chroma."""
