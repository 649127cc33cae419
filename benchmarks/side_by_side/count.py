"""Count the lines of code of a program, and find its parts."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

OFFLINE = "# Offline:"
PROGRAM = "# The program"
SHOWN = "# Shown:"


def lines_of(code: str) -> int:
    """Return the lines of code: no blank lines, comments and docstrings.

    Neither what stands for a model, a person or a database counts, from ``# Offline:`` to
    ``# The program``, nor what shows that the program has worked, from ``# Shown:`` on.
    """
    doc = set(_docstrings(code))
    ignored = False
    counted = set()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            if token.string.startswith((OFFLINE, SHOWN)):
                ignored = True
            elif token.string.startswith(PROGRAM):
                ignored = False
        elif token.string.strip() and not ignored:
            counted |= {*range(token.start[0], token.end[0] + 1)} - doc
    return len(counted)


def _docstrings(code: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None and isinstance(node.body[0], ast.Expr):
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
