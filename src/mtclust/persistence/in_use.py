"""Unfinished files and directories: which of them are being written, and which a killed process has left behind.

Whoever writes one holds a lock on it, which the system takes away with the process, however it ends. One that is not
locked is abandoned. Where files cannot be locked nothing is taken for abandoned, nor is what another machine writes
on a shared disk: its locks may not be seen here, so the name of the machine is part of the mark.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def fresh_mark() -> str:
    """What makes the name of an unfinished file different from all others."""
    return f".mtclust-{_machine()}-{secrets.token_hex(4)}"


def marked_here() -> str:
    """The pattern of the marks made on this machine."""
    return rf"\.mtclust-{_machine()}-[0-9a-f]{{8}}"


def _machine() -> str:
    return hashlib.blake2s(platform.node().encode(), digest_size=4).hexdigest()


def hold(descriptor: int) -> bool:
    """Lock an open file or directory until it is closed; False if it was removed before it could be locked."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # waits for one who is looking whether this is abandoned
    return os.fstat(descriptor).st_nlink > 0


def remove_abandoned(directory: Path, name: re.Pattern[str]) -> None:
    """Remove what killed processes have left in a directory under such a name; what cannot be removed stays."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if name.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_abandoned(directory / entry.name)


def _remove_if_abandoned(path: Path) -> None:
    # something else of that name, a link or a pipe, is not followed or waited for
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)
