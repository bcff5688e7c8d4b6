"""The file of a saved model: a zip of ``.npy`` arrays and one JSON manifest.

Members are stored, not compressed, and their lengths may not add up to more than the file, so that a small file cannot
unfold into a large one. Nothing is ever unpacked to disk. Every member has the checksum of the zip.
"""

from __future__ import annotations

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

from mtclust.persistence.values import PLAIN_KINDS

MANIFEST = "model.json"
_ARRAY_NAME = re.compile(r"arrays/\w[\w.]{0,200}\.npy", flags=re.ASCII)
#: the earliest time a zip can state, so that equal models give equal files
_NO_TIME = (1980, 1, 1, 0, 0, 0)


class ArchiveWriter:
    """Adds arrays one by one and the manifest last; to be used in a ``with`` statement."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED)
        # the arrays are kept beside their names, so that no id is used again while saving
        self._names: dict[int, tuple[NDArray[Any], str]] = {}

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, *error: object) -> None:
        # closed while the stream is open, also after an error, since the zip would try to write when it is collected;
        # what it then says about the stream is the error that is already on its way
        with suppress(Exception) if error[0] is not None else nullcontext():
            self._zip.close()

    def add(self, array: NDArray[Any], where: str) -> str:
        """Store an array under a name that says where it belongs; one that is there already is not stored again."""
        if id(array) not in self._names:
            plain = re.sub(r"\W+", ".", where, flags=re.ASCII).strip(".")[:100]
            name = f"arrays/{plain}.npy"
            if not plain or name in self._zip.NameToInfo:
                name = f"arrays/{plain or 'array'}.{len(self._names)}.npy"
            with self._zip.open(zipfile.ZipInfo(name, _NO_TIME), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            self._names[id(array)] = array, name
        return self._names[id(array)][1]

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest."""
        self._zip.writestr(zipfile.ZipInfo(MANIFEST, _NO_TIME), json.dumps(manifest, allow_nan=False))


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
        wrong = [name for name in self._members if name != MANIFEST and not _ARRAY_NAME.fullmatch(name)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no name of an array")
        if sum(info.file_size for info in self._members.values()) > length:
            raise ValueError("its members claim to be larger than the file")
        self.manifest = json.loads(self._zip.read(MANIFEST), parse_constant=_no_constant)
        self._arrays: dict[str, NDArray[Any]] = {}

    def fetch(self, name: str) -> NDArray[Any]:
        """The array of that name; the same object when asked again."""
        if name not in self._arrays:
            if not isinstance(name, str) or name not in self._members or name == MANIFEST:
                raise ValueError(f"the array {name!r:.60} is missing")
            self._check_header(name)
            with self._zip.open(name) as member:
                self._arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
                member.read()  # to the end, where the checksum is compared
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
