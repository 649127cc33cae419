"""``python -m agent_brain``: the command line."""

from __future__ import annotations

from agent_brain.cli import main

if __name__ == "__main__":
    main()
