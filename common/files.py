"""Write files atomically."""

from __future__ import annotations

import errno
import os
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
    """Write ``text`` to ``path``, completely or not at all.

    Args:
        path: The file; one that exists is replaced.
        text: What it holds.
        mode: Its permissions, of which the umask takes some away.

    Raises:
        FileExistsError: It is a database.
    """
    keep_database(path)
    temporary = path.with_name(f".{path.name}-{os.urandom(8).hex()}")

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, mode)

    try:
        with open(temporary, "x", encoding="utf-8", newline="\n", opener=opener) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
