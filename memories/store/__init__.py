"""The message store beneath the built-in memories: log, session, expiry and removal."""
