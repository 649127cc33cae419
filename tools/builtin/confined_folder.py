"""Read files below a folder that cannot be left."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.tools.errors import ToolError

_STEPWISE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
MAX_NAME = 255  # bytes of a file's name
MAX_PATH = 32_768  # characters
MAX_PARTS = 200  # folders in folders


class FolderEntry(NamedTuple):
    """A file or a folder below the root."""

    parts: tuple[str, ...]  # the names that lead to it from the root
    is_folder: bool
    size: int  # bytes of a file, 0 for a folder
    problem: str = ""  # why the content of a folder is missing

    @property
    def path(self) -> str:
        """The path from the root, as :meth:`ConfinedFolder.read` takes it."""
        return written("/".join(self.parts))


def written(path: str) -> str:
    """Return ``path`` on one line: as a JSON string if it has unprintable characters."""
    odd = not path.isprintable() or path.startswith('"')
    return json.dumps(path) if odd else path


class ConfinedFolder:
    """Reads plain files below a folder, without following links.

    Each component of a path is opened relative to the one before it, refusing links, so replacing
    a file or folder meanwhile cannot lead outside. Where the system does not support that
    (Windows), the opened file is checked to be the one at the path.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int) -> None:
        self.path = Path(path).resolve()
        self.max_bytes = max_bytes
        if not self.path.is_dir():
            raise ToolDefinitionError(f"{str(path)!r} is not a folder that files can be read from")

    def read(self, path: str) -> bytes:
        """Return the content of a plain file, or raise ToolError."""
        with self._opened(_parts(path)) as fd:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise ToolError(f"{path!r} is a folder, not a file")
            if not stat.S_ISREG(found.st_mode):
                raise ToolError(f"{path!r} is not a plain file")
            if found.st_size > self.max_bytes:
                raise ToolError(
                    f"{path!r} has {found.st_size:,} bytes; at most {self.max_bytes:,} are read"
                )
            with os.fdopen(os.dup(fd), "rb") as file:
                data = file.read(self.max_bytes + 1)  # it may grow, or not report its size
        if len(data) > self.max_bytes:
            raise ToolError(f"{path!r} has more than {self.max_bytes:,} bytes")
        return data

    def walk(self, path: str, *, depth: int) -> Iterator[FolderEntry]:
        """Yield what is in a folder, ``depth`` levels deep, without links, or raise ToolError."""
        parts = _parts(path)
        return self._below(parts, self._names(parts), depth)

    def _below(
        self, parts: tuple[str, ...], names: list[tuple[str, bool, int]], depth: int
    ) -> Iterator[FolderEntry]:
        for name, is_folder, size in names:
            entry = FolderEntry((*parts, name), is_folder, size)
            inside: list[tuple[str, bool, int]] = []
            if is_folder and depth > 1:
                try:
                    inside = self._names(entry.parts)
                except ToolError as error:  # locked or deleted meanwhile: list the others
                    entry = entry._replace(problem=str(error))
            yield entry
            yield from self._below(entry.parts, inside, depth - 1)

    def _names(self, parts: tuple[str, ...]) -> list[tuple[str, bool, int]]:
        found: list[tuple[str, bool, int]] = []
        with self._opened(parts) as fd:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                raise ToolError(f"{written('/'.join(parts))!r} is a file, not a folder")
            with os.scandir(fd if _STEPWISE else self.path.joinpath(*parts)) as entries:
                for entry in entries:
                    with suppress(OSError):  # deleted meanwhile
                        known = entry.stat(follow_symlinks=False)
                        if stat.S_ISDIR(known.st_mode):
                            found.append((entry.name, True, 0))
                        elif stat.S_ISREG(known.st_mode):
                            found.append((entry.name, False, known.st_size))
        return sorted(found)

    @contextmanager
    def _opened(self, parts: tuple[str, ...]) -> Iterator[int]:
        """Open a file or a folder below the root; yields its descriptor."""
        path = written("/".join(parts) or ".")
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

    def _step_down(self, parts: tuple[str, ...]) -> int:
        fd = os.open(self.path, _FOLDER)
        for index, part in enumerate(parts):
            flags = (_FILE if index == len(parts) - 1 else _FOLDER) | _NO_LINK
            try:
                inner = _open_in(fd, part, flags)
            finally:
                os.close(fd)
            fd = inner
        return fd

    def _open_checked(self, parts: tuple[str, ...]) -> int:
        target = self.path.joinpath(*parts)
        if target.resolve() != target:
            raise PermissionError(0, "links are not followed")
        fd = os.open(target, _FILE)
        if target.resolve() == target and os.path.samestat(os.fstat(fd), target.lstat()):
            return fd
        os.close(fd)
        raise PermissionError(0, "it was replaced while it was opened")

    def _why(self, parts: Sequence[str], error: OSError) -> str:
        for end in range(1, len(parts) + 1):
            with suppress(OSError):  # too long
                if self.path.joinpath(*parts[:end]).is_symlink():
                    return f"{'/'.join(parts[:end])!r} is a link, and links are not followed"
        why = error.strerror or str(error)
        return f"{why} (paths are written with '/')" if "\\" in "".join(parts) else why


def _open_in(folder: int, name: str, flags: int) -> int:
    """Open ``name`` in a folder, or the only name there that is equal in Unicode."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        same = [] if name.isascii() else os.listdir(folder)
        same = [each for each in same if normalize("NFC", each) == normalize("NFC", name)]
        if len(same) != 1:
            raise
        return os.open(same[0], flags, dir_fd=folder)


def _parts(path: str) -> tuple[str, ...]:
    """Return the components of a path from the root, which may be written as a JSON string."""
    shown, path = path, _unquoted(path)
    if "\0" in path:
        raise ToolError(f"{shown!r} is not a path: it has a NUL character")
    if os.sep == "\\":
        path = path.replace("\\", "/")
    if path.startswith("/") or Path(path).is_absolute() or Path(path).drive:
        raise ToolError(
            f"{shown!r} is an absolute path: paths are relative to the root folder, '.'"
        )
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ToolError(f"{shown!r} has '..' in it: the root folder cannot be left")
    try:
        too_long = any(len(os.fsencode(part)) > MAX_NAME for part in parts)
    except UnicodeEncodeError:
        raise ToolError(f"{shown!r} is not a path: it has half a character") from None
    if too_long or len(parts) > MAX_PARTS or len(path) > MAX_PATH:
        raise ToolError("The path is too long")
    return parts


def _unquoted(path: str) -> str:
    if len(path) > 1 and path.startswith('"') and path.endswith('"'):
        with suppress(ValueError):
            return str(json.loads(path))
    return path
