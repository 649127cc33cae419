"""The task sets that are shipped."""
