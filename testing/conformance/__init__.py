"""Conformance suites for memories, journals, models and tools."""
