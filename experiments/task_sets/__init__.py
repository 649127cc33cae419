"""The task sets that are shipped, and readers of others."""
