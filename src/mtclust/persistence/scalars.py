"""Task ids of further types in the format: Decimal, UUID, and the times, periods and intervals of pandas."""

from __future__ import annotations

from datetime import timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from mtclust.persistence.codec import Decoder, Encoder, add_type
from mtclust.util.extras import require


def _pandas() -> Any:
    return require("pandas", "cli")


def _timestamp(encoder: Encoder, value: Any, where: str) -> dict[str, Any]:
    zone: Any = None
    if value.tz is not None:
        # the zone by its name; one that has none by its distance from UTC, which names the same moment
        name = getattr(value.tz, "key", None) or getattr(value.tz, "zone", None)
        zone = name or value.utcoffset().total_seconds()
    return {"type": "Timestamp", "utc": encoder.encode(value.asm8, where), "unit": value.unit, "zone": zone}


def _decode_timestamp(decoder: Decoder, value: dict[str, Any]) -> Any:
    moment = _pandas().Timestamp(_time(decoder, value["utc"])).as_unit(value["unit"])
    zone = value["zone"]
    if zone is None:
        return moment
    return moment.tz_localize("UTC").tz_convert(
        zone if isinstance(zone, str) else timezone(timedelta(seconds=float(zone)))
    )


def _timedelta(encoder: Encoder, value: Any, where: str) -> dict[str, Any]:
    return {"type": "Timedelta", "length": encoder.encode(value.asm8, where), "unit": value.unit}


def _decode_timedelta(decoder: Decoder, value: dict[str, Any]) -> Any:
    return _pandas().Timedelta(_time(decoder, value["length"])).as_unit(value["unit"])


def _time(decoder: Decoder, value: Any) -> Any:
    found = decoder.decode(value)
    if not isinstance(found, np.datetime64 | np.timedelta64) or np.isnat(found):
        raise ValueError(f"it holds {found!r} in the place of a time")
    return found


def _period(encoder: Encoder, value: Any, where: str) -> dict[str, Any]:
    return {"type": "Period", "ordinal": value.ordinal, "freq": value.freqstr}


def _decode_period(decoder: Decoder, value: dict[str, Any]) -> Any:
    return _pandas().Period(ordinal=int(value["ordinal"]), freq=str(value["freq"]))


def _interval(encoder: Encoder, value: Any, where: str) -> dict[str, Any]:
    ends = [encoder.encode(end, where) for end in (value.left, value.right)]
    return {"type": "Interval", "ends": ends, "closed": value.closed}


def _decode_interval(decoder: Decoder, value: dict[str, Any]) -> Any:
    left, right = decoder.decode(value["ends"])
    return _pandas().Interval(left, right, str(value["closed"]))


add_type(
    Decimal,
    "Decimal",
    lambda _, value, where: {"type": "Decimal", "value": str(value)},
    lambda _, value: Decimal(value["value"]),
)
add_type(
    UUID, "UUID", lambda _, value, where: {"type": "UUID", "hex": value.hex}, lambda _, value: UUID(hex=value["hex"])
)
add_type(None, "Timestamp", _timestamp, _decode_timestamp)
add_type(None, "Timedelta", _timedelta, _decode_timedelta)
add_type(None, "Period", _period, _decode_period)
add_type(None, "Interval", _interval, _decode_interval)
