"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def unfinished_name() -> str:
    """The name of a file or directory that is being written, unlike all others: ``.mtclust-….tmp``."""
    return f".mtclust-{secrets.token_hex(4)}.tmp"


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place only when everything has been written.

    Until then, and if anything goes wrong (an error, Ctrl-C, a full disk), an earlier file of that name stays as it
    was. The file is flushed to the disk before it takes its place, so that this holds after a power cut as well. A
    process that is killed may leave ``.mtclust-….tmp`` beside the file, which can be deleted.
    """
    target = Path(os.path.realpath(path))  # a link stays a link, as with open()
    if target.exists() and not target.is_file():
        raise OSError(f"path={os.fspath(path)!r} is a directory or no regular file; give another name.")
    fresh = target.parent / unfinished_name()
    try:
        with open(fresh, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, fresh)
        os.replace(fresh, target)
    except BaseException as error:
        fresh.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(fresh)):
            # a full disk, no such directory: say which file was meant, not its temporary name
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    flush_directory(target.parent)


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
    """Why something could not be written, and the way out."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return f"{error.strerror}. {'Make room there, or choose' if full else 'Choose'} another place."
