"""What a memory knows of runs beside its messages: turns, requests, scratch data, claims.

The registers of the state machine itself are in ``memories/control.py``.
"""
