"""Reading members of a tar archive into memory, without ever writing one to disk.

Nothing is extracted, so that names such as ``../../x``, links and devices can do no harm. What comes out of the
decompression is counted while it is read, with headers and members that nobody wants, so that a small archive cannot
unfold into more than the data set could be.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

#: how compressed files begin, and how they are read
_FORMATS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}


class _Bounded:
    """A stream that gives no more than so many bytes."""

    def __init__(self, stream: IO[bytes], path: Path, max_bytes: int) -> None:
        self._stream, self._path, self._max_bytes, self._given = stream, path, max_bytes, 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._given += len(data)
        if self._given > self._max_bytes:
            raise ValueError(
                f"{self._path.name} holds more than {self._max_bytes // 10**6} MB, more than this data set has: "
                "it is not the archive it should be. Delete it to have it downloaded again."
            )
        return data


def read_members(path: Path, name: re.Pattern[str], *, max_bytes: int) -> list[tuple[re.Match[str], bytes]]:
    """The regular files of an archive whose whole name matches ``name``: the match and the content of each.

    It may be compressed by gzip, bzip2 or xz, or not at all. A broken archive, or one of more than ``max_bytes``, is a
    ``ValueError``.
    """
    members = []
    try:
        with path.open("rb") as file:
            beginning = file.read(6)
            file.seek(0)
            known = [read for start, read in _FORMATS.items() if beginning.startswith(start)]
            bounded: Any = _Bounded(known[0](file) if known else file, path, max_bytes)
            archive = tarfile.open(fileobj=bounded, mode="r|")  # noqa: SIM115  (the file below it is closed)
            for member in archive:
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
