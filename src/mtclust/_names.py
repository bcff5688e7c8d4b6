"""Names that come from data, made fit to be shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

#: characters of a name that are shown unless told otherwise
LONGEST_NAME = 24


def shown_name(name: Any, longest: int = LONGEST_NAME) -> str:
    r"""A task's or column's name on one line: control characters spelled out, the middle of a long one left out.

    Both ends are kept, since names often differ only in the last characters.

    Examples
    --------
    >>> shown_name("north\nwest"), shown_name("measurements of station 1138", longest=15)
    ('north\\nwest', 'measure…on 1138')
    """
    text = spelled_out(str(name))
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return text[: longest - 1 - tail] + "…" + text[len(text) - tail :]


def spelled_out(text: str) -> str:
    r"""A text in which nothing is hidden: control characters and marks that turn the order of reading are spelled out.

    Examples
    --------
    >>> spelled_out("gnp.\u202egod"), spelled_out("Zürich 東京")
    ('gnp.\\u202egod', 'Zürich 東京')
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: East Asian characters two, combining ones none.

    Examples
    --------
    >>> columns("Zürich"), columns("東京")
    (6, 4)
    """
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def padded(text: str, width: int) -> str:
    """The text filled up with blanks to a number of columns."""
    return text + " " * (width - columns(text))


def listing(names: Sequence[Any], most: int = 4) -> str:
    """A few names in a sentence.

    Examples
    --------
    >>> listing(["a", "b", "c"]), listing([1, 2, 3, 4, 5, 6])
    ('a, b and c', '1, 2, 3, 4 and 2 more')
    """
    texts = [str(name) for name in names]
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
