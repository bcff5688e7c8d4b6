"""The file of a saved model: a zip of ``.npy`` arrays and one JSON manifest; and values as JSON and back, without code.

Members are stored, not compressed, and their lengths may not add up to more than the file, so that a small file cannot
unfold into a large one. Nothing is ever unpacked to disk. Every member has the checksum of the zip, and the manifest
lists those of the arrays: an array that was exchanged for another is noticed.

None, bool, int, finite float, str and list are themselves in JSON; everything else is an object with a ``"type"``, such
as ``{"type": "tuple", "items": [...]}``. Arrays stand outside of the JSON, which names them. Numbers of numpy become
plain ones.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import IO, Any
from uuid import UUID

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.persistence.schema import STATES

MANIFEST = "model.json"
CHECKSUMS = "checksums"
_ARRAY_NAME = re.compile(r"arrays/\w[\w.]{0,200}\.npy", flags=re.ASCII)
#: kinds of numpy types whose bytes are the value: bool, integers, floats, complex, times, strings of one length
PLAIN_KINDS = "biufcMmSU"
#: fields of records that earlier files have and models do not any more
_GONE = {("Moments", name) for name in ("largest", "offset")}
_GONE |= {("Stability", name) for name in ("shares", "task_correlation", "task_covariance")}

#: arrays by their names in a file
Arrays = dict[str, NDArray[Any]]


def write(stream: IO[bytes], manifest: dict[str, Any], arrays: Arrays) -> None:
    """Write the arrays, then the manifest, and in it the checksums of the arrays."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        checksums = {name: info.CRC for name, info in archive.NameToInfo.items()}
        archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(manifest | {CHECKSUMS: checksums}, allow_nan=False))


def opened(stream: IO[bytes]) -> tuple[zipfile.ZipFile, Any]:
    """The zip that :func:`write` wrote, and its manifest; anything else raises an error."""
    archive, length = zipfile.ZipFile(stream), stream.seek(0, os.SEEK_END)
    members, names = archive.infolist(), archive.namelist()
    if MANIFEST not in names:
        raise ValueError(f"it is a zip without {MANIFEST}")
    if len(set(names)) != len(names):
        raise ValueError("two members have the same name")
    if any(info.compress_type != zipfile.ZIP_STORED for info in members):
        raise ValueError("its members are compressed")
    for name in names:
        if name != MANIFEST and not _ARRAY_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an array")
    if sum(info.file_size for info in members) > length:
        raise ValueError("its members claim to be larger than the file")
    return archive, json.loads(archive.read(MANIFEST), parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise ValueError(f"its manifest holds {name}, which is no JSON")


def arrays_of(archive: zipfile.ZipFile, checksums: dict[str, int] | None) -> Arrays:
    """All arrays; these are the checksums that the manifest was written with, None in earlier formats."""
    names = [name for name in archive.namelist() if name != MANIFEST]
    if checksums is not None and checksums != {name: archive.getinfo(name).CRC for name in names}:
        raise ValueError("its arrays are not those that were saved with it")
    arrays = {}
    for name in names:
        with archive.open(name) as member:
            array = np.lib.format.read_array(member, allow_pickle=False)
            member.read()  # to the end, where the checksum is compared
        if array.dtype.kind not in PLAIN_KINDS or array.dtype.itemsize == 0:
            raise ValueError(f"{name} is an array of {array.dtype}")
        arrays[name] = array
    return arrays


def encode(value: Any, where: str, arrays: Arrays) -> Any:
    """What ``json.dumps`` takes; arrays are added to ``arrays``, errors call the value ``where``."""
    kind = type(value)

    def part(item: Any, where: str) -> Any:
        return encode(item, where, arrays)

    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind in _SIMPLE:
        name, as_json, _ = _SIMPLE[kind]
        return {"type": name, **as_json(value)}
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
        return {"type": "array", "name": _added(value, where, arrays)}
    if kind in (sp.csr_matrix, sp.csr_array):
        parts = {name: part(getattr(value, name), f"{where}.{name}") for name in ("data", "indices", "indptr")}
        return {"type": "csr", "container": kind.__name__, "shape": list(value.shape), **parts}
    if isinstance(value, np.generic) and value.dtype.kind in "biufMmUS" and type(value.item()) is not kind:
        return part(value.item(), where)
    raise TypeError(
        f"{where} cannot be saved: it is of type {kind.__name__}. Allowed are None, bool, int, float, str, "
        "datetime, timedelta, list, tuple, dict, range, numpy arrays and numbers, and CSR matrices."
    )


def _added(array: NDArray[Any], where: str, arrays: Arrays) -> str:
    """The name of an array that says where it belongs; one that is there already is not stored again."""
    for name, known in arrays.items():
        if known is array:
            return name
    plain = re.sub(r"\W+", ".", where, flags=re.ASCII).strip(".")[:100] or "array"
    name = f"arrays/{plain}.npy" if f"arrays/{plain}.npy" not in arrays else f"arrays/{plain}.{len(arrays)}.npy"
    arrays[name] = array
    return name


def decode(value: Any, arrays: Arrays) -> Any:
    """Undo :func:`encode`. What is not as it was written raises an error."""
    if type(value) is list:
        return [decode(item, arrays) for item in value]
    if type(value) is not dict:
        return value
    kind = value["type"]
    if kind in _DECODERS:
        return _DECODERS[kind](value)
    if kind == "array":
        return arrays[value["name"]]
    if kind == "tuple":
        return tuple(decode(value["items"], arrays))
    if kind == "dict":
        keys = [decode(key, arrays) for key, _ in value["items"]]
        same = max(Counter(map(hash, keys)).values(), default=0)
        if same > 16:  # by chance one or two: such a dictionary would take quadratic time
            raise ValueError(f"it holds {same} keys of a dictionary with the same hash")
        return dict(zip(keys, [decode(item, arrays) for _, item in value["items"]]))
    if kind == "dataclass":
        if value["name"] not in STATES:
            raise ValueError(f"it holds a record of unknown class {value['name']!r:.40}")
        known = {name: item for name, item in value["fields"].items() if (value["name"], name) not in _GONE}
        return STATES[value["name"]](**{name: decode(item, arrays) for name, item in known.items()})
    if kind == "objects":
        items = decode(value["items"], arrays)
        if math.prod(value["shape"]) != len(items):
            raise ValueError(f"it holds an array of shape {value['shape']} with {len(items)} items")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # not flat[:] = items, which would unpack nested sequences
            flat[i] = item
        return flat.reshape(value["shape"])
    if kind == "csr":
        container = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}[value["container"]]
        parts = tuple(arrays[value[part]["name"]] for part in ("data", "indices", "indptr"))
        matrix = container(parts, shape=tuple(value["shape"]))
        matrix.check_format(full_check=True)  # an index out of range would be read as an address later
        return matrix
    raise ValueError(f"it holds a value of unknown type {kind!r:.40}")


def _decode_number(value: dict[str, Any]) -> Any:
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in "biufcMm":
        raise ValueError(f"it holds a number of type {dtype}")
    (number,) = np.frombuffer(bytes.fromhex(value["hex"]), dtype)
    return number.item()


#: values that hold no others: what they are called, what of them stands in the JSON, and the way back
_SIMPLE: dict[type, tuple[str, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any]]] = {
    float: ("float", lambda x: {"value": repr(x)}, lambda saved: float(saved["value"])),
    range: ("range", lambda x: {"range": [x.start, x.stop, x.step]}, lambda saved: range(*saved["range"])),
    datetime: (
        "datetime",
        lambda x: {"iso": x.isoformat(), "fold": x.fold},
        lambda saved: datetime.fromisoformat(saved["iso"]).replace(fold=saved["fold"]),
    ),
    timedelta: (
        "timedelta",
        lambda x: {"parts": [x.days, x.seconds, x.microseconds]},
        lambda saved: timedelta(*saved["parts"]),
    ),
}
#: the others are no longer written
_DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {name: back for name, _, back in _SIMPLE.values()} | {
    "bytes": lambda value: bytes.fromhex(value["hex"]),
    "number": _decode_number,
    "numpy string": lambda value: str(value["value"]),
    "date": lambda value: value["iso"],
    "Decimal": lambda value: value["value"],
    "UUID": lambda value: str(UUID(hex=value["hex"])),
    "random state": lambda value: None,
}
