"""Python values as JSON and arrays, and back, without code: the types below and registered dataclasses, nothing else.

None, bool, int, finite float, str and list are themselves in JSON. Everything else is an object with a ``"type"``:
``{"type": "tuple", "items": [...]}``. Arrays are not part of the JSON; it only names them (``{"type": "array", "name":
...}``), so that one that occurs twice is stored once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: kinds of numpy types whose bytes are the value: bool, integers, floats, complex, times, fixed-length strings
PLAIN_KINDS = "biufcMmSU"

#: so many values that Python cannot tell apart by their hash make a dictionary slow; by chance there are one or two
_SAME_HASH = 16

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class _Registered:
    cls: type
    slim: Callable[[Any], Any] | None


_REGISTRY: dict[str, _Registered] = {}


def register(cls: Class, *, slim: Callable[[Any], Any] | None = None) -> Class:
    """Allow a dataclass in saved models, under its own name.

    Parameters
    ----------
    cls : type
        A dataclass whose fields are of types the format knows, or dataclasses that are registered themselves. A field
        that a later version adds needs a default, which models saved before then get.
    slim : callable, optional
        ``slim(value)`` returns the instance to store instead, for instance without a matrix that is not needed after
        fitting.

    Returns
    -------
    type
        ``cls``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from mtclust.persistence import register
    >>> @register
    ... @dataclass(frozen=True)
    ... class Threshold:
    ...     value: float
    """
    if not is_dataclass(cls):
        raise TypeError(f"cls={cls!r} is not a dataclass; only dataclasses can be registered.")
    known = _REGISTRY.get(cls.__name__)
    if known is not None and (known.cls.__module__, known.cls.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"another class with the name {cls.__name__!r} is registered: {known.cls!r}.")
    _REGISTRY[cls.__name__] = _Registered(cls, slim)
    return cls


class Encoder:
    """Turns values into what ``json.dumps`` takes; arrays go to ``store``, which returns their names."""

    def __init__(self, store: Callable[[NDArray[Any]], str]) -> None:
        self._store = store
        # the arrays are kept beside their names, so that no id is used again while encoding
        self._stored: dict[int, tuple[NDArray[Any], str]] = {}

    def encode(self, value: Any, where: str) -> Any:
        """Encode a value; ``where`` is what an error calls it."""
        kind = type(value)
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        if hasattr(value, "__dask_graph__"):  # labels of rows in chunks are saved with the model, as an array
            return self.encode(value.compute(), where)
        if kind is list:
            return [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
        if is_dataclass(value):
            return self._dataclass(value, where)
        if kind in (np.ndarray, np.memmap):
            return self._array(value, where)
        encode = _ENCODERS.get(kind) or (_scalar if isinstance(value, np.generic) else None)
        if encode is None and kind.__module__.split(".")[0] == "pandas":  # which need not be there to read the others
            encode = _OF_PANDAS.get(kind.__name__)
        if encode is None:
            raise TypeError(
                f"{where} cannot be saved: it is of type {kind.__name__}. Allowed are None, bool, int, float, str, "
                "bytes, dates and times, Decimal, UUID, list, tuple, dict, range, numpy arrays and numbers, CSR "
                "matrices and RandomState."
            )
        return encode(self, value, where)

    def _dataclass(self, value: Any, where: str) -> dict[str, Any]:
        name = type(value).__name__
        known = _REGISTRY.get(name)
        if known is None or known.cls is not type(value):
            raise TypeError(f"{where} cannot be saved: {name} is not registered (mtclust.persistence.register).")
        slim: Any = value if known.slim is None else known.slim(value)
        encoded = {f.name: self.encode(getattr(slim, f.name), f"{where}.{f.name}") for f in fields(slim)}
        return {"type": "dataclass", "name": name, "fields": encoded}

    def _array(self, value: NDArray[Any], where: str) -> dict[str, Any]:
        if value.dtype.kind == "O":
            items = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value.ravel().tolist())]
            return {"type": "objects", "shape": list(value.shape), "items": items}
        if value.dtype.kind not in PLAIN_KINDS or value.dtype.itemsize == 0:
            raise TypeError(f"{where} cannot be saved: it is an array of {value.dtype}.")
        if id(value) not in self._stored:
            self._stored[id(value)] = value, self._store(value)
        return {"type": "array", "name": self._stored[id(value)][1]}


def _scalar(encoder: Encoder, value: np.generic, where: str) -> dict[str, Any]:
    if isinstance(value, np.str_):
        return {"type": "numpy string", "value": str(value)}
    if isinstance(value, np.bytes_):
        return {"type": "bytes", "hex": value.hex()}
    if value.dtype.kind not in "biufcMm":
        raise TypeError(f"{where} cannot be saved: it is a numpy {value.dtype}.")
    return {"type": "number", "dtype": value.dtype.str, "hex": value.tobytes().hex()}


def _csr(encoder: Encoder, value: Any, where: str) -> dict[str, Any]:
    parts = {part: encoder.encode(getattr(value, part), f"{where}.{part}") for part in ("data", "indices", "indptr")}
    return {"type": "csr", "container": type(value).__name__, "shape": list(value.shape), **parts}


def _random_state(encoder: Encoder, value: np.random.RandomState, where: str) -> dict[str, Any]:
    state: Any = value.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise TypeError(f"{where} cannot be saved: a RandomState on {state['bit_generator']}. Use a whole number.")
    return {"type": "random state", "state": encoder.encode(state, where)}


_ENCODERS: dict[type, Callable[[Encoder, Any, str], Any]] = {
    float: lambda _, value, where: {"type": "float", "value": repr(value)},
    tuple: lambda encoder, value, where: {"type": "tuple", "items": encoder.encode(list(value), where)},
    dict: lambda encoder, value, where: {
        "type": "dict",
        "items": [
            [encoder.encode(key, f"a key of {where}"), encoder.encode(item, f"{where}[{key!r}]")]
            for key, item in value.items()
        ],
    },
    range: lambda _, value, where: {"type": "range", "range": [value.start, value.stop, value.step]},
    bytes: lambda _, value, where: {"type": "bytes", "hex": value.hex()},
    datetime: lambda _, value, where: {"type": "datetime", "iso": value.isoformat(), "fold": value.fold},
    date: lambda _, value, where: {"type": "date", "iso": value.isoformat()},
    timedelta: lambda _, value, where: {
        "type": "timedelta",
        "parts": [value.days, value.seconds, value.microseconds],
    },
    sp.csr_matrix: _csr,
    sp.csr_array: _csr,
    np.random.RandomState: _random_state,
}


class Decoder:
    """Undoes :class:`Encoder`; arrays come from ``fetch``. What is not as the encoder writes it raises an error."""

    def __init__(self, fetch: Callable[[str], NDArray[Any]]) -> None:
        self._fetch = fetch

    def decode(self, value: Any) -> Any:
        if type(value) is list:
            return [self.decode(item) for item in value]
        if type(value) is not dict:
            return value
        decode = _DECODERS.get(value["type"])
        if decode is None:
            raise ValueError(f"it holds a value of unknown type {value['type']!r}")
        return decode(self, value)

    def array(self, value: Any) -> NDArray[Any]:
        """Decode what must be an array."""
        decoded = self.decode(value)
        if not isinstance(decoded, np.ndarray):
            raise ValueError(f"it holds a {type(decoded).__name__} in the place of an array")
        return decoded


def _decode_dataclass(decoder: Decoder, value: dict[str, Any]) -> Any:
    known = _REGISTRY.get(value["name"])
    if known is None:
        raise ValueError(f"it holds an object of unknown class {value['name']!r}")
    unknown = sorted(set(value["fields"]) - {field.name for field in fields(known.cls)})
    if unknown:
        raise ValueError(f"its {value['name']} has unknown fields {unknown}")
    return known.cls(**{name: decoder.decode(item) for name, item in value["fields"].items()})


def _decode_dict(decoder: Decoder, value: dict[str, Any]) -> dict[Any, Any]:
    found = [decoder.decode(key) for key, _ in value["items"]]
    check_hashes(found)
    return dict(zip(found, [decoder.decode(item) for _, item in value["items"]]))


def check_hashes(found: list[Any]) -> None:
    """Refuse keys made so that a dictionary of them takes quadratic time."""
    _, counts = np.unique(np.array([hash(key) for key in found], dtype=np.int64), return_counts=True)
    if counts.max(initial=0) > _SAME_HASH:
        raise ValueError(f"it holds {counts.max()} keys of a dictionary with the same hash")


def _decode_objects(decoder: Decoder, value: dict[str, Any]) -> NDArray[Any]:
    items = decoder.decode(value["items"])
    if math.prod(value["shape"]) != len(items):
        raise ValueError(f"it holds an array of shape {value['shape']} with {len(items)} items")
    flat = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # not flat[:] = items, which would unpack nested sequences
        flat[i] = item
    return flat.reshape(value["shape"])


def _decode_number(decoder: Decoder, value: dict[str, Any]) -> Any:
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in "biufcMm":
        raise ValueError(f"it holds a number of type {dtype}")
    (number,) = np.frombuffer(bytes.fromhex(value["hex"]), dtype)
    return number


def _decode_csr(decoder: Decoder, value: dict[str, Any]) -> Any:
    containers = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}
    rows, columns = value["shape"]
    parts = tuple(decoder.array(value[part]) for part in ("data", "indices", "indptr"))
    matrix = containers[value["container"]](parts, shape=(rows, columns))
    matrix.check_format(full_check=True)  # an index out of range would be read as an address later
    return matrix


def _decode_random_state(decoder: Decoder, value: dict[str, Any]) -> np.random.RandomState:
    state = decoder.decode(value["state"])
    if state["bit_generator"] != "MT19937" or not 0 <= state["state"]["pos"] <= 624:
        raise ValueError("it holds a state of random numbers that is none")
    random_state = np.random.RandomState()
    random_state.set_state(state)
    return random_state


_DECODERS: dict[str, Callable[[Decoder, dict[str, Any]], Any]] = {
    "float": lambda _, value: float(value["value"]),
    "tuple": lambda decoder, value: tuple(decoder.decode(value["items"])),
    "dict": _decode_dict,
    "range": lambda _, value: range(*value["range"]),
    "bytes": lambda _, value: bytes.fromhex(value["hex"]),
    "datetime": lambda _, value: datetime.fromisoformat(value["iso"]).replace(fold=value["fold"]),
    "date": lambda _, value: date.fromisoformat(value["iso"]),
    "timedelta": lambda _, value: timedelta(*value["parts"]),
    "numpy string": lambda _, value: np.str_(value["value"]),
    "number": _decode_number,
    "array": lambda decoder, value: decoder._fetch(value["name"]),
    "objects": _decode_objects,
    "csr": _decode_csr,
    "dataclass": _decode_dataclass,
    "random state": _decode_random_state,
}


#: how values of pandas are written, by the name of their type
_OF_PANDAS: dict[str, Callable[[Encoder, Any, str], Any]] = {}


def add_type(
    cls: type | None,
    name: str,
    encode: Callable[[Encoder, Any, str], dict[str, Any]],
    decode: Callable[[Decoder, dict[str, Any]], Any],
) -> None:
    """Let instances of a class into the format; what ``encode`` returns must have ``name`` as its ``"type"``.

    Without ``cls`` it is the class of pandas that has this name.
    """
    if cls is None:
        _OF_PANDAS[name] = encode
    else:
        _ENCODERS[cls] = encode
    _DECODERS[name] = decode
