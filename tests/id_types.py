"""Task ids of every type that fits: name → two different ids, in the container people have them in."""

import datetime as dt
import decimal
import enum
import uuid
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars
import pytest


def strings(values, **options):
    """An array of numpy's strings of variable length."""
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("this numpy has no StringDType")
    return np.array(values, dtype=np.dtypes.StringDType(**options))


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


IDS = {
    "int": lambda: [7, 8],
    "large int": lambda: [2**70, -(2**5000)],
    "bool": lambda: [True, False],
    "float": lambda: [0.5, np.inf],
    "float16": lambda: np.array([0.5, 2], dtype=np.float16),
    "uint64": lambda: np.array([2**64 - 1, 1], dtype=np.uint64),
    "numbers of numpy as objects": lambda: np.array([np.int64(3), np.float32(0.5)], dtype=object),
    "str": lambda: ["Zürich", "東京"],
    "str as objects": lambda: np.array(["a", "b"], dtype=object),
    "str of numpy as objects": lambda: np.array([np.str_("a"), np.str_("b")], dtype=object),
    "empty str": lambda: ["", " "],
    "NUL at the end": lambda: ["a", "a\0"],
    "digits": lambda: ["9" * 5000, "1" * 5000],
    "StringDType": lambda: strings(["a", "b"]),
    "StringDType that may miss": lambda: strings(["a", "b"], na_object=np.nan),
    "str of pandas": lambda: pd.Series(["a", "b"], dtype="string"),
    "str of arrow": lambda: pd.Series(["a", "b"], dtype="string[pyarrow]"),
    "Int64": lambda: pd.array([1, 2], dtype="Int64"),
    "category": lambda: pd.Categorical(["a", "b"]),
    "interval": lambda: pd.cut([1.0, 5.0], [0, 2, 6]),
    "polars": lambda: polars.Series(["a", "b"]),
    "polars category": lambda: polars.Series(["a", "b"], dtype=polars.Categorical),
    "date": lambda: [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    "datetime": lambda: [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2, 3, 4, 5, 6)],
    "datetime with zone": lambda: [dt.datetime(2024, m, 1, tzinfo=ZoneInfo("Europe/Paris")) for m in (1, 7)],
    "timedelta": lambda: [dt.timedelta(1), dt.timedelta(seconds=2)],
    **{f"datetime64[{unit}]": lambda unit=unit: np.array(["2024", "2025"], dtype=f"datetime64[{unit}]")
       for unit in ("Y", "M", "D", "s", "ms", "us", "ns")},
    "datetime64 far away": lambda: np.array(["-4000", "30000"], dtype="datetime64[Y]"),
    "timedelta64[h]": lambda: np.array([1, 2], dtype="timedelta64[h]"),
    "Timestamp": lambda: [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01 00:00:00.000001")],
    "Timestamp with zone": lambda: pd.DatetimeIndex(["2024-01-01", "2024-07-01"], tz="Europe/Paris"),
    "Timestamp with offset": lambda: [pd.Timestamp("2024-01-01T00:00+05:30"), pd.Timestamp("2024-01-02T00:00+05:30")],
    "Timedelta": lambda: [pd.Timedelta("1D"), pd.Timedelta(1, "s")],
    "Period": lambda: pd.PeriodIndex(["2024-01", "2024-02"], freq="M"),
    "Decimal": lambda: [decimal.Decimal("0.1"), decimal.Decimal("0.10000000000000000000000001")],
    "UUID": lambda: [uuid.UUID(int=1), uuid.UUID(int=2)],
    "enum": lambda: [Colour.RED, Colour.BLUE],
}  # fmt: skip


def repeated(ids, rows):
    """The same container with one id per row."""
    if isinstance(ids, list):
        return [ids[i] for i in rows]
    return ids.take(rows) if isinstance(ids, pd.Index | pd.Categorical) else ids[rows]
