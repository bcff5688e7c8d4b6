"""Reading members of a tar archive into memory, without ever writing one to disk.

Nothing is extracted, so that names such as ``../../x``, links and devices can do no harm; the total size is bounded, so
that a small archive cannot unfold into more than the data set could be.
"""

from __future__ import annotations

import lzma
import re
import tarfile
import zlib
from pathlib import Path


def read_members(path: Path, name: re.Pattern[str], *, max_bytes: int) -> list[tuple[re.Match[str], bytes]]:
    """The regular files of an archive whose whole name matches ``name``: the match and the content of each.

    Any compression that :mod:`tarfile` knows will do. A broken archive, or one of more than ``max_bytes``, is a
    ``ValueError``.
    """
    members = []
    total = 0
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                total += max(member.size, 0)
                if total > max_bytes:
                    raise ValueError(
                        f"{path.name} holds more than {max_bytes // 10**6} MB, more than this data set has: "
                        "it is not the archive it should be."
                    )
                match = name.fullmatch(member.name.removeprefix("./"))
                if match is None or not member.isreg():
                    continue
                stream = archive.extractfile(member)
                content = stream.read() if stream is not None else b""
                if len(content) != member.size:
                    raise EOFError(f"{member.name} ends early")
                members.append((match, content))
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise ValueError(
            f"{path.name} is a broken archive ({type(error).__name__}: {error}). Delete it to have it downloaded again."
        ) from error
    return members
