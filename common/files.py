"""Write files atomically."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

_SQLITE = b"SQLite format 3\0"


def keep_database(path: Path) -> None:
    """Check that what is to be replaced is not a SQLite database, such as a journal.

    Raises:
        FileExistsError: It is one.
    """
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                problem = "it is a database, such as a journal, and is not replaced"
                raise FileExistsError(errno.EEXIST, problem, str(path))


def replace_file(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Write ``text`` to ``path``, completely or not at all, with the permissions ``mode``.

    Raises:
        FileExistsError: It is a database.
    """
    keep_database(path)
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
