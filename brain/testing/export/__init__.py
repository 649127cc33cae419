"""A run that went wrong, made a test of."""

from __future__ import annotations

from agent_brain.testing.export.errors import ExportError
from agent_brain.testing.export.file import export_test

__all__ = ["ExportError", "export_test"]
