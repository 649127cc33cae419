"""Intervals, tests and power. Pure functions."""
