"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when everything has been written.

    Until then, and if anything goes wrong (an error, Ctrl-C, a full disk), an earlier file of that name stays as it
    was. It is flushed to the disk before it takes its place, so that this holds after a power cut as well.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with atomic_write(Path(directory) / "numbers") as stream:
    ...         _ = stream.write(b"1 2 3")
    ...     (Path(directory) / "numbers").read_bytes()
    b'1 2 3'
    """
    target = Path(os.path.realpath(path))  # a link stays a link, as with open()
    if target.is_dir():
        raise IsADirectoryError(f"path={os.fspath(path)!r} is a directory; give the name of a file.")
    if target.exists() and not target.is_file():
        raise OSError(f"path={os.fspath(path)!r} is not a regular file and cannot be replaced.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path={os.fspath(path)!r}: there is no directory {os.fspath(target.parent)!r}.")
    fresh = target.parent / f".mtclust-{secrets.token_hex(8)}.tmp"
    try:
        with _created(fresh, path) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, fresh)
        os.replace(fresh, target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    _flush_directory(target.parent)


def _created(fresh: Path, path: str | os.PathLike[str]) -> BinaryIO:
    try:
        return open(fresh, "xb")
    except OSError as error:  # a read-only directory, for instance: say which file was meant, not its temporary name
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _flush_directory(directory: Path) -> None:
    """Make the rename itself last; only where directories can be opened (not on Windows)."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
