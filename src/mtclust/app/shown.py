"""Names and numbers as people read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np


def natural_order(names: Iterable[Any]) -> list[int]:
    """Positions that sort names as people do: task 2 before task 10.

    Examples
    --------
    >>> natural_order(["shop 10", "shop 2"])
    [1, 0]
    """
    texts = [str(name) for name in names]
    keys = [[_key(part) for part in re.split(r"(\d+)", text.casefold())] for text in texts]
    return sorted(range(len(texts)), key=lambda i: (keys[i], texts[i]))


def _key(part: str) -> tuple[int, int, str]:
    if not part.isdecimal():
        return 1, 0, part
    # by length, then digit by digit: a name of thousands of digits is no number that Python reads
    digits = "".join(str(unicodedata.digit(character)) for character in part).lstrip("0")
    return 0, len(digits), digits


def figure(value: float) -> str:
    """A measured value with three digits that matter.

    Examples
    --------
    >>> figure(12345.6), figure(0.01234), figure(-3.14159), figure(0.0), figure(2e-9)
    ('12,346', '0.0123', '−3.14', '0', '2e−09')
    """
    if not np.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 1000:
        text = f"{value:,.0f}" if size < 1e9 else f"{value:.2e}"
    elif size == 0:
        text = "0"
    elif size < 1e-4:
        text = f"{value:.2g}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", "−")


def percent(share: float) -> str:
    """A share in per cent.

    Examples
    --------
    >>> percent(0.254), percent(0.004), percent(0.0)
    ('25 %', '0.4 %', '0 %')
    """
    value = 100 * share
    return f"{value:.1f} %" if 0 < value < 1 else f"{value:.0f} %"
