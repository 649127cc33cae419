"""A folder that cannot be left: files are opened below it one component at a time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agent_brain.tools.errors import ToolDefinitionError, ToolError

_STEPWISE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Entry(NamedTuple):
    """A file or a folder below the root.

    Attributes:
        path: Its path from the root, with ``/``.
        is_folder: What it is.
        size: Bytes of a file, 0 for a folder.
    """

    path: str
    is_folder: bool
    size: int


class Root:
    """Reads below a folder. Links are never followed, and only plain files are read.

    Each component of a path is opened by itself, relative to the one before it and refusing links,
    so nothing that is exchanged meanwhile leads outside. Where the system cannot do that (Windows),
    the opened file is checked to be the one that the path led to.

    Args:
        path: The folder; it may itself be reached through links.
        max_bytes: Larger files are refused.

    Raises:
        ToolDefinitionError: It is no folder.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int) -> None:
        self.path = Path(path).resolve()
        self.max_bytes = max_bytes
        if not self.path.is_dir():
            raise ToolDefinitionError(f"{str(path)!r} is no folder that files can be read from")

    def read(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            ToolError: It is outside, no plain file, too large, or cannot be read.
        """
        with self._opened(path) as fd:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise ToolError(f"{path!r} is a folder, not a file")
            if not stat.S_ISREG(found.st_mode):
                raise ToolError(f"{path!r} is no plain file, and is not read")
            if found.st_size > self.max_bytes:
                raise ToolError(
                    f"{path!r} has {found.st_size:,} bytes, and files of more than "
                    f"{self.max_bytes:,} are not read"
                )
            with os.fdopen(os.dup(fd), "rb") as file:
                data = file.read(self.max_bytes + 1)  # it may grow, or not say its size
        if len(data) > self.max_bytes:
            raise ToolError(f"{path!r} has more than {self.max_bytes:,} bytes, and is not read")
        return data

    def walk(self, path: str, *, depth: int) -> Iterator[Entry]:
        """What is in a folder and, ``depth`` levels deep, in its folders; links are left out.

        Raises:
            ToolError: It is outside, no folder, or cannot be read.
        """
        parts = _parts(path)
        names = self._names(path)
        for name, is_folder, size in names:
            inner = "/".join([*parts, name])
            yield Entry(inner, is_folder, size)
            if is_folder and depth > 1:
                yield from self.walk(inner, depth=depth - 1)

    def _names(self, path: str) -> list[tuple[str, bool, int]]:
        with self._opened(path) as fd:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                raise ToolError(f"{path!r} is a file, not a folder")
            found = []
            with os.scandir(fd if _STEPWISE else self.path.joinpath(*_parts(path))) as entries:
                for entry in entries:
                    try:
                        known = entry.stat(follow_symlinks=False)
                    except OSError:  # it has gone meanwhile
                        continue
                    if stat.S_ISDIR(known.st_mode):
                        found.append((entry.name, True, 0))
                    elif stat.S_ISREG(known.st_mode):
                        found.append((entry.name, False, known.st_size))
        return sorted(found)

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        """A file descriptor of a file or a folder below the root."""
        parts = _parts(path)
        try:
            fd = self._step_down(parts) if _STEPWISE else self._open_checked(parts)
        except OSError as error:
            raise ToolError(f"{path!r} cannot be opened: {self._why(parts, error)}") from None
        try:
            yield fd
        except OSError as error:
            raise ToolError(f"{path!r} cannot be read: {error.strerror}") from None
        finally:
            os.close(fd)

    def _step_down(self, parts: list[str]) -> int:
        fd = os.open(self.path, _FOLDER)
        for index, part in enumerate(parts):
            flags = (_FILE if index == len(parts) - 1 else _FOLDER) | _NO_LINK
            try:
                inner = os.open(part, flags, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd

    def _open_checked(self, parts: list[str]) -> int:
        target = self.path.joinpath(*parts)
        if target.resolve() != target:
            raise PermissionError(0, "links are not followed")
        fd = os.open(target, _FILE)
        if target.resolve() == target and os.path.samestat(os.fstat(fd), target.lstat()):
            return fd
        os.close(fd)
        raise PermissionError(0, "it was exchanged while it was opened")

    def _why(self, parts: list[str], error: OSError) -> str:
        for end in range(1, len(parts) + 1):
            if self.path.joinpath(*parts[:end]).is_symlink():
                return f"{'/'.join(parts[:end])!r} is a link, and links are not followed"
        return error.strerror or str(error)


def _parts(path: str) -> list[str]:
    """The components of a path from the root.

    Raises:
        ToolError: It is absolute, leads upwards, or is no path.
    """
    if "\0" in path:
        raise ToolError(f"{path!r} is no path: it has a NUL character")
    if os.sep == "\\" or "\\" in path:
        path = path.replace("\\", "/")
    if path.startswith("/") or Path(path).is_absolute() or (len(path) > 1 and path[1] == ":"):
        raise ToolError(f"{path!r} is an absolute path: give paths from the root folder, '.'")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ToolError(f"{path!r} has '..' in it: the root folder cannot be left")
    if any(len(part.encode(errors="replace")) > 255 for part in parts) or len(path) > 4096:
        raise ToolError("The path is too long")
    return parts
