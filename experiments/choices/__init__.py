"""Reads the nets, memories and models of an experiment."""
