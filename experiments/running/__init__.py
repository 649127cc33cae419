"""Runs the cases of an experiment."""
