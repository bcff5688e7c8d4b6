"""Values as JSON and back, without code: parameters, what was chosen, task ids, and what users save beside a model.

None, bool, int, finite float, str and list are themselves in JSON; everything else is an object with a ``"type"``, such
as ``{"type": "tuple", "items": [...]}``. Arrays stand outside of the JSON, which names them. Numbers of numpy become
plain ones, and task ids of further types (dates, Decimal, UUID, times, periods and intervals of pandas) strings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: kinds of numpy types whose bytes are the value: bool, integers, floats, complex, times, strings of one length
PLAIN_KINDS = "biufcMmSU"
#: so many values that Python cannot tell apart by their hash make a dictionary slow; by chance there are one or two
_SAME_HASH = 16
#: types of task ids that are saved as strings, and those of pandas
_AS_STRINGS = (date, Decimal, UUID)
_PANDAS_AS_STRINGS = ("Timestamp", "Timedelta", "Period", "Interval")

Store = Callable[[NDArray[Any], str], str]
Fetch = Callable[[str], NDArray[Any]]


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
    if kind is np.random.RandomState and value.get_state(legacy=False)["bit_generator"] == "MT19937":
        return {"type": "random state", "state": part(value.get_state(legacy=False), where)}
    of_pandas = kind.__name__ in _PANDAS_AS_STRINGS and kind.__module__.split(".")[0] == "pandas"
    if ids and (kind in _AS_STRINGS or of_pandas):
        return str(value)
    raise TypeError(
        f"{where} cannot be saved: it is of type {kind.__name__}. Allowed are None, bool, int, float, str, bytes, "
        "datetime, timedelta, list, tuple, dict, range, numpy arrays and numbers, CSR matrices and RandomState."
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
    if kind == "objects":
        items = decode(value["items"], fetch)
        if math.prod(value["shape"]) != len(items):
            raise ValueError(f"it holds an array of shape {value['shape']} with {len(items)} items")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # not flat[:] = items, which would unpack nested sequences
            flat[i] = item
        return flat.reshape(value["shape"])
    if kind == "csr":
        return _decode_csr(value, fetch)
    if kind == "random state":
        state = decode(value["state"], fetch)
        if state["bit_generator"] != "MT19937" or not 0 <= state["state"]["pos"] <= 624:
            raise ValueError("it holds a state of random numbers that is none")
        random_state = np.random.RandomState()
        random_state.set_state(state)
        return random_state
    raise ValueError(f"it holds a value of unknown type {kind!r:.40}")


def _decode_csr(value: dict[str, Any], fetch: Fetch) -> Any:
    containers = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}
    rows, columns = value["shape"]
    parts = tuple(decode(value[part], fetch) for part in ("data", "indices", "indptr"))
    for part in parts:
        if not isinstance(part, np.ndarray):
            raise ValueError(f"it holds a {type(part).__name__} in the place of an array")
    matrix = containers[value["container"]](parts, shape=(rows, columns))
    matrix.check_format(full_check=True)  # an index out of range would be read as an address later
    return matrix


def _decode_number(value: dict[str, Any]) -> Any:
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in "biufcMm":
        raise ValueError(f"it holds a number of type {dtype}")
    (number,) = np.frombuffer(bytes.fromhex(value["hex"]), dtype)
    return number.item()


def check_hashes(keys: list[Any]) -> None:
    """Refuse keys made so that a dictionary of them takes quadratic time."""
    _, counts = np.unique(np.array([hash(key) for key in keys], dtype=np.int64), return_counts=True)
    if counts.max(initial=0) > _SAME_HASH:
        raise ValueError(f"it holds {counts.max()} keys of a dictionary with the same hash")


#: values that hold no others; the last five are written by formats 2 and 3 only
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
}
