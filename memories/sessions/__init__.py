"""The sessions of a journal from outside: listed, copied, compared, and read as of a step.

How one memory reads and writes its session is in ``memories/store/session.py``.
"""
