"""The file of a saved model: a zip of ``.npy`` arrays and one JSON manifest; and values as JSON and back, without code.

Members are stored, not compressed, and their lengths may not add up to more than the file, so that a small file cannot
unfold into a large one. Nothing is ever unpacked to disk. Every member has the checksum of the zip, and the manifest
lists those of the arrays: an array that was exchanged for another is noticed.

None, bool, int, finite float, str and list are themselves in JSON; everything else is an object with a ``"type"``, such
as ``{"type": "tuple", "items": [...]}``. Arrays stand outside of the JSON, which names them. Numbers of numpy become
plain ones, and task ids of further types (dates, Decimal, UUID, times, periods and intervals of pandas) strings.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import fields
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import IO, Any
from uuid import UUID

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.persistence.schema import STATES, check_hashes

MANIFEST = "model.json"
CHECKSUMS = "checksums"
_ARRAY_NAME = re.compile(r"arrays/\w[\w.]{0,200}\.npy", flags=re.ASCII)
#: kinds of numpy types whose bytes are the value: bool, integers, floats, complex, times, strings of one length
PLAIN_KINDS = "biufcMmSU"
#: types of task ids that are saved as strings, and those of pandas
_AS_STRINGS = (date, Decimal, UUID)
_PANDAS_AS_STRINGS = ("Timestamp", "Timedelta", "Period", "Interval")

#: fields of records that earlier files have and models do not any more
_GONE = {("Moments", "largest")}

Store = Callable[[NDArray[Any], str], str]
Fetch = Callable[[str], NDArray[Any]]


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
            with self._zip.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            self._names[id(array)] = array, name
        return self._names[id(array)][1]

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, and in it the checksums of the arrays."""
        manifest = manifest | {CHECKSUMS: {name: info.CRC for name, info in self._zip.NameToInfo.items()}}
        self._zip.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(manifest, allow_nan=False))


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

    def check_arrays(self) -> None:
        """Refuse arrays that are not those the manifest was written with."""
        there = {name: info.CRC for name, info in self._members.items() if name != MANIFEST}
        if there != self.manifest[CHECKSUMS]:
            raise ValueError("its arrays are not those that were saved with it")

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


def encode(value: Any, where: str, store: Store, *, ids: bool = True) -> Any:
    """What ``json.dumps`` takes; ``store`` keeps an array and returns its name, errors call the value ``where``.

    With ``ids`` task ids may be among the values, some of which become strings.
    """
    kind = type(value)

    def part(item: Any, where: str) -> Any:
        return encode(item, where, store, ids=ids)

    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if hasattr(value, "__dask_graph__"):  # labels of rows in chunks are saved with the model, as an array
        return part(value.compute(), where)
    if kind in (list, tuple):
        items = [part(item, f"{where}[{i}]") for i, item in enumerate(value)]
        return items if kind is list else {"type": "tuple", "items": items}
    if kind is dict:
        pairs = value.items()
        items = [[part(k, f"a key of {where}"), part(v, f"{where}[{k!r}]")] for k, v in pairs]
        return {"type": "dict", "items": items}
    if STATES.get(kind.__name__) is kind:
        known = {name.name: part(getattr(value, name.name), f"{where}.{name.name}") for name in fields(kind)}
        return {"type": "dataclass", "name": kind.__name__, "fields": known}
    if kind in (np.ndarray, np.memmap):
        if value.dtype.kind == "O":
            items = [part(item, f"{where}[{i}]") for i, item in enumerate(value.ravel().tolist())]
            return {"type": "objects", "shape": list(value.shape), "items": items}
        if value.dtype.kind not in PLAIN_KINDS or value.dtype.itemsize == 0:
            raise TypeError(f"{where} cannot be saved: it is an array of {value.dtype}.")
        return {"type": "array", "name": store(value, where)}
    if kind in (sp.csr_matrix, sp.csr_array):
        parts = {name: part(getattr(value, name), f"{where}.{name}") for name in ("data", "indices", "indptr")}
        return {"type": "csr", "container": kind.__name__, "shape": list(value.shape), **parts}
    if isinstance(value, np.generic) and value.dtype.kind in "biufMmU" and type(value.item()) is not kind:
        return part(value.item(), where)
    if kind is float:
        return {"type": "float", "value": repr(value)}
    if kind is range:
        return {"type": "range", "range": [value.start, value.stop, value.step]}
    if kind in (bytes, np.bytes_):
        return {"type": "bytes", "hex": value.hex()}
    if kind is datetime:
        return {"type": "datetime", "iso": value.isoformat(), "fold": value.fold}
    if kind is timedelta:
        return {"type": "timedelta", "parts": [value.days, value.seconds, value.microseconds]}
    of_pandas = kind.__name__ in _PANDAS_AS_STRINGS and kind.__module__.split(".")[0] == "pandas"
    if ids and (kind in _AS_STRINGS or of_pandas):
        return str(value)
    raise TypeError(
        f"{where} cannot be saved: it is of type {kind.__name__}. Allowed are None, bool, int, float, str, bytes, "
        "datetime, timedelta, list, tuple, dict, range, numpy arrays and numbers, and CSR matrices."
    )


def decode(value: Any, fetch: Fetch) -> Any:
    """Undo :func:`encode`; ``fetch`` gives an array by its name. What is not as it was written raises an error."""
    if type(value) is list:
        return [decode(item, fetch) for item in value]
    if type(value) is not dict:
        return value
    kind = value["type"]
    if kind in _DECODERS:
        return _DECODERS[kind](value)
    if kind == "array":
        return fetch(value["name"])
    if kind == "tuple":
        return tuple(decode(value["items"], fetch))
    if kind == "dict":
        keys = [decode(key, fetch) for key, _ in value["items"]]
        check_hashes(keys)
        return dict(zip(keys, [decode(item, fetch) for _, item in value["items"]]))
    if kind == "dataclass":
        if value["name"] not in STATES:
            raise ValueError(f"it holds a record of unknown class {value['name']!r:.40}")
        known = {name: item for name, item in value["fields"].items() if (value["name"], name) not in _GONE}
        return STATES[value["name"]](**{name: decode(item, fetch) for name, item in known.items()})
    if kind == "objects":
        items = decode(value["items"], fetch)
        if math.prod(value["shape"]) != len(items):
            raise ValueError(f"it holds an array of shape {value['shape']} with {len(items)} items")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # not flat[:] = items, which would unpack nested sequences
            flat[i] = item
        return flat.reshape(value["shape"])
    if kind == "csr":
        containers = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}
        parts = tuple(decode(value[part], fetch) for part in ("data", "indices", "indptr"))
        if not all(isinstance(part, np.ndarray) for part in parts):
            raise ValueError("it holds a sparse matrix that is not made of arrays")
        matrix = containers[value["container"]](parts, shape=tuple(value["shape"]))
        matrix.check_format(full_check=True)  # an index out of range would be read as an address later
        return matrix
    raise ValueError(f"it holds a value of unknown type {kind!r:.40}")


def _decode_number(value: dict[str, Any]) -> Any:
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in "biufcMm":
        raise ValueError(f"it holds a number of type {dtype}")
    (number,) = np.frombuffer(bytes.fromhex(value["hex"]), dtype)
    return number.item()


#: values that hold no others; the last six are written by formats 2 and 3 only
_DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "float": lambda value: float(value["value"]),
    "range": lambda value: range(*value["range"]),
    "bytes": lambda value: bytes.fromhex(value["hex"]),
    "datetime": lambda value: datetime.fromisoformat(value["iso"]).replace(fold=value["fold"]),
    "timedelta": lambda value: timedelta(*value["parts"]),
    "number": _decode_number,
    "numpy string": lambda value: str(value["value"]),
    "date": lambda value: str(date.fromisoformat(value["iso"])),
    "Decimal": lambda value: str(Decimal(value["value"])),
    "UUID": lambda value: str(UUID(hex=value["hex"])),
    "random state": lambda value: None,
}
