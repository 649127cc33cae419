"""Recall: which messages answer a question. Private, but for :mod:`.results`."""
