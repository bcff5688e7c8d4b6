"""Task ids as people hold them, made plain: one type per table, none missing, none that could not be saved.

Ids become an array of numbers, strings, bytes or times, or an array of objects of the types below. Times of numpy are
kept in microseconds where these hold them, so that a day is the same task whatever unit it is given in.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

#: types of ids that stand in arrays of objects; subclasses of the first row are made plain
_BASIC = (str, bytes, bool, int, float)
_KEPT = (datetime, date, timedelta, Decimal, UUID, tuple)
#: the same of pandas, and what it calls missing
_OF_PANDAS = ("Timestamp", "Timedelta", "Period", "Interval")
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")
#: characters of ids that are held in numpy's strings, where all take as much as the longest; and of any id
_SHORT, _LONGEST = 64, 10_000
_ALLOWED = (
    "allowed are numbers, strings, bytes, dates and times, tuples, Decimal, UUID, and periods and intervals of pandas"
)


def plain_ids(ids: Any, argument: str) -> NDArray[Any]:
    """Ids as an array; those that are missing are None, NaN or NaT in it. ``argument`` is what an error calls them."""
    array: NDArray[Any]
    if np.ma.isMaskedArray(ids) and np.ma.is_masked(ids):
        array = np.array(ids.data, dtype=object)
        array[np.ma.getmaskarray(ids)] = None
    elif hasattr(ids, "dtype"):
        array = np.asarray(ids)
    else:
        # numpy makes strings of whatever stands beside strings: 1 and "1" would be one task, NaN a name
        array = np.asarray(ids, dtype=object)
        types = {type(value) for value in array.flat}
        if not any(issubclass(kind, str | bytes) for kind in types):
            array = np.asarray(ids)
        elif types == {str}:
            array = strings_of(array)
    if array.dtype.kind in "OUS":
        _refuse_long(array, argument)
    if array.dtype.kind == "T":  # strings of any length, with an object of the user's for missing ones
        array = array.astype(object)
    if array.dtype.kind in "Mm":
        return in_microseconds(array)
    if array.dtype.kind == "O":
        return _plain_objects(array, argument)
    if array.dtype.kind not in "biufUS":
        raise TypeError(f"{argument} has ids of type {array.dtype}; {_ALLOWED}.")
    return array


def strings_of(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as strings: of numpy's fixed length where all are short, otherwise as objects, which cost what they are.

    Examples
    --------
    >>> strings_of(np.array(["a", 1], dtype=object)), strings_of(np.array(["a", "b" * 100], dtype=object)).dtype
    (array(['a', '1'], dtype='<U1'), dtype('O'))
    """
    if ids.dtype.kind == "U":
        return ids
    strings = [str(value) for value in ids.flat]
    # a fixed length loses zeros at the end
    if max(map(len, strings), default=0) <= _SHORT and not any(value.endswith("\0") for value in strings):
        return np.array(strings, dtype=str).reshape(ids.shape)
    objects = np.empty(len(strings), dtype=object)
    objects[:] = strings
    return objects.reshape(ids.shape)


def _refuse_long(ids: NDArray[Any], argument: str) -> None:
    if ids.dtype.kind == "O":
        longest = max((len(value) for value in ids.flat if isinstance(value, str | bytes)), default=0)
    else:
        longest = ids.dtype.itemsize // (4 if ids.dtype.kind == "U" else 1)
    if longest > _LONGEST:
        raise ValueError(
            f"{argument} has an id of {longest} characters, but ids have up to {_LONGEST}: this looks like a column of "
            "texts. Give short names of the tasks."
        )


def in_microseconds(times: NDArray[Any]) -> NDArray[Any]:
    """Times of numpy in microseconds, or as they are where that would change one of them."""
    converted = times.astype(f"{times.dtype.kind}8[us]")
    same = (converted.astype(times.dtype) == times) | np.isnat(times)
    return converted if same.all() else times


def _plain_objects(array: NDArray[Any], argument: str) -> NDArray[Any]:
    types = {type(value) for value in array.flat}
    if types <= set(_BASIC):
        return array
    refused = [kind for kind in types if not _is_kept(kind)]
    if refused:
        raise TypeError(f"{argument} has ids of type {refused[0].__name__}; {_ALLOWED}.")
    if not any(issubclass(kind, _BASIC) and kind not in _BASIC for kind in types):
        return array
    plain = np.empty(array.shape, dtype=object)
    for place, value in enumerate(array.flat):
        plain.flat[place] = _basic(value)
    return plain


def _is_kept(kind: type) -> bool:
    if kind.__name__ in _MISSING or issubclass(kind, (*_BASIC, *_KEPT)):
        return True
    if issubclass(kind, np.generic):
        return np.dtype(kind).kind in "biufMmUS"
    return kind.__name__ in _OF_PANDAS and kind.__module__.split(".")[0] == "pandas"


def _basic(value: Any) -> Any:
    """A member of an enumeration, or of another class that is a string or a number, as that."""
    for kind in _BASIC:
        if isinstance(value, kind) and not isinstance(value, np.generic):
            return str.__str__(value) if kind is str else kind(value)  # type: ignore[arg-type]
    return value


def missing_ids(ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of plain ids are missing."""
    if ids.dtype.kind == "f":
        return np.isnan(ids)
    if ids.dtype.kind in "Mm":
        return np.isnat(ids)
    if ids.dtype.kind == "O":
        if {type(value) for value in ids.flat} <= {str, int, bool, bytes}:
            return np.zeros(ids.shape, dtype=bool)
        return np.array([_is_missing(value) for value in ids.flat], dtype=bool).reshape(ids.shape)
    return np.zeros(ids.shape, dtype=bool)


def _is_missing(value: Any) -> bool:
    # NaN, NaT and what is masked differ from themselves; pandas.NA answers with itself
    equal = value == value
    return value is None or not (isinstance(equal, bool | np.bool_) and bool(equal))


def keys(ids: NDArray[Any]) -> list[Any]:
    """What tells plain ids apart: the same for the same time as ``datetime64``, ``Timestamp``, date or datetime."""
    if ids.dtype.kind in "Mm":
        converted = ids.astype(f"{ids.dtype.kind}8[us]")
        exact = converted.astype(ids.dtype) == ids
        return [key if same else str(value).rstrip("0") for key, same, value in zip(converted.tolist(), exact, ids)]
    if ids.dtype.kind == "O":
        return [_key(value) for value in ids.tolist()]
    return ids.tolist()


def _key(value: Any) -> Any:
    if type(value) is date:
        return datetime.combine(value, time())
    if isinstance(value, np.datetime64 | np.timedelta64):
        return keys(np.array([value]))[0]
    return value
