"""Recall: which messages answer a question."""
