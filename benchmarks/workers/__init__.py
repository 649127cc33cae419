"""Runs on several worker processes, some of which are killed."""
