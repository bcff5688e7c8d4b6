"""The messages of 20 Newsgroups in their canonical order, and their counts of terms."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from paper.datasets._archives import read_members
from paper.datasets._files import DataFile, obtain
from paper.datasets._porter import porter_stem
from paper.datasets._rows import check_content, content_hash

#: terms of the paper's matrix
VOCABULARY_SIZE = 26_214
REMOVABLE = ("footers", "headers", "quotes")
VOCABULARIES = ("stems", "words")

_FILES = (
    DataFile("20news/20news-bydate.tar.xz", "bcd71af20087ecb37810f5ea1242330c59a0107f33c31f0a5f8685db008b79ce"),
    # scikit-learn's source and checksum of the same messages
    DataFile(
        "20news/20news-bydate.tar.gz",
        "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        ("https://ndownloader.figshare.com/files/5975967",),
    ),
)
#: of newsgroup, number and text of every message, in canonical order
_CONTENT = "f76d599af5c630d5ad9086175fe2fa7882c6cd6712d2fd313d9c0fde241cc064"
_MEMBER = re.compile(r"20news-bydate-(?:train|test)/([a-z.\-]+)/(\d+)")
_MAX_BYTES = 200 * 10**6
#: of messages: each byte is a character, so that text and bytes are one
_ENCODING = "latin-1"
_QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")
_LETTERS = re.compile(r"[a-z]{2,}")
_WORDS = re.compile(r"\w\w+")


@dataclass(frozen=True)
class NewsgroupCounts:
    """Counts of terms in every message.

    Attributes
    ----------
    counts : CSR array of shape (18846, n_terms)
    terms : ndarray of str of shape (n_terms,)
    groups : ndarray of shape (18846,)
        Position in ``group_names`` of each message's newsgroup.
    group_names : tuple of str
    """

    counts: Any
    terms: NDArray[Any]
    groups: NDArray[np.int64]
    group_names: tuple[str, ...]


#: newsgroup, number in the newsgroup, text
Message = tuple[str, int, bytes]


# two entries: one vocabulary with and one without headers is what an experiment compares
@lru_cache(maxsize=2)
def newsgroup_counts(
    remove: tuple[str, ...],
    vocabulary: str,
    data_home: str | None,
    download_if_missing: bool,
) -> NewsgroupCounts:
    """Counts of terms in the whole collection, sorted by newsgroup and number."""
    unknown = set(remove) - set(REMOVABLE)
    if unknown:
        raise ValueError(f"remove has {sorted(unknown)}; it may hold {', '.join(REMOVABLE)}.")
    if vocabulary not in VOCABULARIES:
        raise ValueError(f"vocabulary must be one of {', '.join(VOCABULARIES)}; got {vocabulary!r}.")
    messages = _find_messages(data_home, download_if_missing)
    group_names, groups = np.unique([group for group, _, _ in messages], return_inverse=True)
    texts = (strip_message(text.decode(_ENCODING), remove) for _, _, text in messages)
    vectorizer = CountVectorizer(analyzer=_analyzer(vocabulary))
    counts = sp.csr_array(vectorizer.fit_transform(texts))
    # an object array: the longest term would set the width of every entry of a text array
    terms = vectorizer.get_feature_names_out().astype(object)
    if vocabulary == "stems":
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        # ties in the order of the alphabet
        frequent = np.sort(np.argsort(-frequency, kind="stable")[:VOCABULARY_SIZE])
        counts, terms = sp.csr_array(counts[:, frequent]), terms[frequent]
    return NewsgroupCounts(counts, terms, groups.astype(np.int64), tuple(group_names.tolist()))


def strip_message(text: str, remove: tuple[str, ...]) -> str:
    """A message without some of its parts, by the rules of scikit-learn's loader.

    Examples
    --------
    >>> strip_message("Subject: x\\n\\nIn article 1:\\n> no\\nyes\\n--\\nJim", ("footers", "headers", "quotes"))
    'yes'
    """
    if "headers" in remove:
        text = text.partition("\n\n")[2]
    if "footers" in remove:
        lines = text.strip().split("\n")
        # the signature begins at the last line that is blank or made of hyphens
        start = next((i for i in range(len(lines) - 1, 0, -1) if not lines[i].strip().strip("-")), 0)
        text = "\n".join(lines[:start]) if start > 0 else text
    if "quotes" in remove:
        text = "\n".join(line for line in text.split("\n") if not _QUOTE.search(line))
    return text


def _analyzer(vocabulary: str) -> Callable[[str], list[str]]:
    if vocabulary == "words":
        return lambda text: [word for word in _WORDS.findall(text.lower()) if word not in ENGLISH_STOP_WORDS]
    stem = lru_cache(maxsize=None)(porter_stem)
    return lambda text: [stem(word) for word in _LETTERS.findall(text.lower()) if word not in ENGLISH_STOP_WORDS]


def _find_messages(data_home: str | None, download_if_missing: bool) -> list[Message]:
    # what scikit-learn's loader may have stored before is not used: it is a pickle, which could execute code
    return obtain(_FILES, _parse, data_home=data_home, download_if_missing=download_if_missing)


def _parse(path: Path) -> list[Message]:
    members = read_members(path, _MEMBER, max_bytes=_MAX_BYTES)
    return _canonical([(match[1], int(match[2]), text) for match, text in members], str(path))


def _canonical(messages: list[Message], source: str) -> list[Message]:
    messages = sorted(messages)
    parts = [part for group, number, text in messages for part in (group.encode(), str(number).encode(), text)]
    check_content(content_hash(parts), _CONTENT, "20 Newsgroups", source)
    return messages
