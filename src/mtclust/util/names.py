"""Names that come from data, made fit to be shown."""

from __future__ import annotations

import re
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


def distinct_names(names: Sequence[Any], longest: int = LONGEST_NAME) -> list[str]:
    """Names that are too long, shortened where they are all equal rather than where they differ.

    Examples
    --------
    >>> distinct_names(["Hospital No. 7 of the Northern Region", "Hospital No. 8 of the Southern Region"], 18)
    ['…7…Northern…', '…8…Southern…']
    >>> distinct_names([f"Hospital No. {number} of the Northern Region" for number in (17, 18)])
    ['…No. 17…', '…No. 18…']
    >>> distinct_names(["Oslo", "Rome"])
    ['Oslo', 'Rome']
    """
    texts = [shown_name(name, 10_000) for name in names]
    if max(map(len, texts), default=0) <= longest or len(set(texts)) < 2:
        return [shown_name(text, longest) for text in texts]
    shorter = _without_equal_words(texts, longest)
    beginnings = [text if len(text) <= longest else text[: longest - 1].rstrip() + "…" for text in texts]
    if shorter == texts and len(set(beginnings)) == len(set(texts)):
        return beginnings
    shown = [shown_name(text, longest) for text in shorter]
    return shown if len(set(shown)) == len(set(texts)) else shorter


def _room(parts: Sequence[list[str]], ahead: int, behind: int) -> int:
    return max(len("".join(part[ahead : len(part) - behind])) for part in parts)


def _without_equal_words(texts: Sequence[str], longest: int) -> list[str]:
    """What differs between the texts; an ellipsis stands for words that all have in the same place."""
    parts = [re.findall(r"\w+|\W+", text) for text in texts]
    ahead = 0
    shortest = min(map(len, parts))
    while ahead < shortest and len({part[ahead] for part in parts}) == 1:
        ahead += 1
    behind = 0
    while behind < shortest - ahead and len({part[-1 - behind] for part in parts}) == 1:
        behind += 1
    equal = ahead
    while ahead and _room(parts, ahead - 1, behind) <= longest // 2:
        ahead -= 1  # a word that all have, where there is room: No. 7 rather than 7
    inner = [part[ahead : len(part) - behind] for part in parts]
    same = set()
    if len({len(part) for part in inner}) == 1:
        same = {k for k in range(equal - ahead, len(inner[0])) if len({part[k] for part in inner}) == 1}
    found = []
    for part in inner:
        kept = "".join("\0" if k in same else word for k, word in enumerate(part))
        text = re.sub("\0+", lambda gap: "…" if len(gap.group()) > 1 else " ", kept)
        found.append("…" * bool(ahead) + text.strip() + "…" * bool(behind))
    return found


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
