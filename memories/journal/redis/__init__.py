"""A journal on a Redis server."""
