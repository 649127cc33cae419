"""The command ``user``: ``commands`` has its commands, ``knowing`` what they do."""
