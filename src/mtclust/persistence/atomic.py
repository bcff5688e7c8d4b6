"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mtclust.persistence.in_use import fresh_mark, hold, marked_here, remove_abandoned


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when everything has been written.

    Until then, and if anything goes wrong (an error, Ctrl-C, a full disk), an earlier file of that name stays as it
    was. It is flushed to the disk before it takes its place, so that this holds after a power cut as well. A process
    that is killed leaves ``.mtclust-….tmp`` beside the file; the next one that writes there removes it.

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
        raise OSError(f"path={os.fspath(path)!r} is not a regular file and cannot be replaced; give another name.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"path={os.fspath(path)!r}: there is no directory {os.fspath(target.parent)!r}; make it first."
        )
    remove_abandoned(target.parent, re.compile(marked_here() + r"\.tmp"))
    fresh = target.parent / f"{fresh_mark()}.tmp"
    try:
        with _created(fresh) as stream, _kept_locked(stream):
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            stream.close()
            if target.exists():
                shutil.copymode(target, fresh)
            os.replace(fresh, target)
    except BaseException as error:
        fresh.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(fresh)):
            # a full disk, a read-only directory: say which file was meant, not its temporary name
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    flush_directory(target.parent)


def _created(fresh: Path) -> BinaryIO:
    while True:
        stream = open(fresh, "xb")  # noqa: SIM115  (the caller closes it)
        if hold(stream.fileno()):
            return stream
        stream.close()  # another process was quicker to take it for abandoned than we to lock it


@contextmanager
def _kept_locked(stream: BinaryIO) -> Iterator[None]:
    """Keep the lock on a file when it is closed; where there are no locks (Windows) an open file cannot be renamed."""
    if os.name != "posix":
        yield
        return
    descriptor = os.dup(stream.fileno())
    try:
        yield
    finally:
        os.close(descriptor)


def flush_directory(directory: Path) -> None:
    """Make a rename itself last; only where directories can be opened (not on Windows)."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(error: OSError) -> str:
    """Why something could not be written, and the way out.

    Examples
    --------
    >>> import errno
    >>> cannot_write(OSError(errno.ENOSPC, "No space left on device"))
    'No space left on device. Make room there, or choose another place.'
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{error.strerror}. Make room there, or choose another place."
    return f"{error.strerror}. Choose another place."
