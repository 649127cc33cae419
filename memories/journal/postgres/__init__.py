"""A journal in a PostgreSQL database."""
