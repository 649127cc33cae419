"""Every benchmark, one after the other: ``python -m benchmarks [--quick]``."""

from __future__ import annotations

from benchmarks import spine

if __name__ == "__main__":
    spine.main()
