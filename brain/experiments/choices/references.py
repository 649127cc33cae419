"""Objects that a text names, as ``module:name`` or ``path/to/file.py:name``. Private."""

from __future__ import annotations

from agent_brain.errors import ExperimentError


def load_object(what: str, reference: str) -> object:
    """Return what ``reference`` names.

    Args:
        what: What error messages begin with.
        reference: The module or the file, and the name in it.

    Raises:
        ExperimentError: It cannot be imported, or has no such name.
    """
    from agent_brain.cli.exit_codes import UserError
    from agent_brain.cli.net_reference import load_object as find

    try:
        return find(what, reference)
    except UserError as error:
        raise ExperimentError(str(error)) from error
