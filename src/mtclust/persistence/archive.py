"""The file of a saved model: a zip of ``.npy`` arrays and one JSON manifest, written whole or not at all.

Members are stored, not compressed, and their lengths may not add up to more than the file, so that a small file cannot
unfold into a large one. Nothing is ever unpacked to disk. Every array has its SHA-256 in the manifest; the manifest has
the CRC of the zip.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import zipfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.persistence.codec import PLAIN_KINDS

MANIFEST = "model.json"
_ARRAY_NAME = re.compile(r"arrays/[0-9]{1,9}\.npy")
#: the earliest time a zip can state, so that equal models give equal files
_NO_TIME = (1980, 1, 1, 0, 0, 0)


class _Hashed:
    """A stream that hashes what is written to or read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        self._sha256.update(data)
        return self._stream.write(data)

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._sha256.update(data)
        return data

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


class ArchiveWriter:
    """Adds arrays one by one and the manifest last; to be used in a ``with`` statement."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED)
        self._checksums: dict[str, str] = {}

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, *error: object) -> None:
        # closed while the stream is open, also after an error, since the zip would try to write when it is collected;
        # what it then says about the stream is the error that is already on its way
        with suppress(Exception) if error[0] is not None else nullcontext():
            self._zip.close()

    def add(self, array: NDArray[Any]) -> str:
        """Store an array and return the name it has in the file."""
        name = f"arrays/{len(self._checksums)}.npy"
        with self._zip.open(zipfile.ZipInfo(name, _NO_TIME), "w", force_zip64=True) as member:
            hashed = _Hashed(member)
            np.lib.format.write_array(hashed, np.asanyarray(array), allow_pickle=False)
        self._checksums[name] = hashed.hexdigest()
        return name

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, with the checksums of all arrays."""
        text = json.dumps(manifest | {"sha256": self._checksums}, allow_nan=False)
        self._zip.writestr(zipfile.ZipInfo(MANIFEST, _NO_TIME), text)


class ArchiveReader:
    """Reads what :class:`ArchiveWriter` wrote; anything else raises an error."""

    def __init__(self, stream: IO[bytes]) -> None:
        length = stream.seek(0, os.SEEK_END)
        self._zip = zipfile.ZipFile(stream)
        self._members = {info.filename: info for info in self._zip.infolist()}
        if MANIFEST not in self._members:
            raise ValueError(f"it is a zip without {MANIFEST}")
        if len(self._members) != len(self._zip.infolist()):
            raise ValueError("two members have the same name")
        if any(info.compress_type != zipfile.ZIP_STORED for info in self._members.values()):
            raise ValueError("its members are compressed")
        if sum(info.file_size for info in self._members.values()) > length:
            raise ValueError("its members claim to be larger than the file")
        self.manifest = json.loads(self._zip.read(MANIFEST), parse_constant=_no_constant)
        self._arrays: dict[str, NDArray[Any]] = {}

    def check_members(self) -> None:
        """Every array has a checksum, every checksum an array, and nothing else is in the file."""
        stated = {*self.manifest["sha256"], MANIFEST}
        different = sorted(stated ^ set(self._members))
        if different:
            raise ValueError(f"members and checksums do not belong together: {different[:3]}")
        wrong = [name for name in self.manifest["sha256"] if not _ARRAY_NAME.fullmatch(name)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no name of an array")

    def fetch(self, name: str) -> NDArray[Any]:
        """The array of that name; the same object when asked again."""
        if name not in self._arrays:
            expected = self.manifest["sha256"][name]
            self._check_header(name)
            with self._zip.open(name) as member:
                hashed = _Hashed(member)
                array = np.lib.format.read_array(hashed, allow_pickle=False)
                rest = hashed.read()
            if rest or hashed.hexdigest() != expected:
                raise ValueError(f"{name} has the wrong checksum")
            self._arrays[name] = array
        return self._arrays[name]

    def _check_header(self, name: str) -> None:
        """What the array claims to be must be a plain one of exactly the bytes that follow, before room is made."""
        read_header: dict[tuple[int, int], Callable[[Any], Any]] = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        with self._zip.open(name) as member:
            shape, _, dtype = read_header[np.lib.format.read_magic(member)](member)
            follow = self._members[name].file_size - member.tell()
        if dtype.kind not in PLAIN_KINDS:
            raise ValueError(f"{name} is an array of {dtype}")
        if min(shape, default=0) < 0 or dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != follow:
            raise ValueError(f"{name} has {follow} bytes for an array of {dtype} of shape {shape}")


def _no_constant(name: str) -> None:
    raise ValueError(f"its manifest holds {name}, which is no JSON")
