"""Four tasks of product reviews, positive or negative: the Multi-Domain Sentiment data set."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction import DictVectorizer

from mtclust.datasets import TaskData
from paper.datasets.files import DataFile, check_content, draw_fraction, obtain, read_members
from paper.datasets.text import text_features

#: the tasks
DOMAINS = ("books", "dvd", "electronics", "kitchen")
#: the classes
POLARITIES = ("negative", "positive")

_FILES = (
    DataFile("sentiment/processed_acl.tar.xz", "6411b2a565b166410d819c878ad677f734cd23ab0bc6f4a5949af63292977b7c"),
    # the authors' archive, with unlabelled reviews besides; no checksum is published, its labelled reviews are checked
    DataFile(
        "sentiment/processed_acl.tar.gz",
        None,
        "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/processed_acl.tar.gz",
    ),
)
#: of domain, polarity and line of every labelled review, in canonical order
_CONTENT = "d14a017dbae93c5d5e3b1ec2620a57561eccc9212eab7981475ff44621083da9"
_MEMBER = re.compile(rf"(?:.*/)?({'|'.join(DOMAINS)})/({'|'.join(POLARITIES)})\.review")

#: domain, polarity, line
Review = tuple[str, str, bytes]


def fetch_sentiment_tasks(fraction: float = 0.1, seed: int = 0, **features: Any) -> TaskData:
    """Product reviews of four kinds (books, dvd, electronics, kitchen), 1000 positive and 1000 negative each.

    Blitzer, Dredze and Pereira 2007, processed_acl: counts of 473 856 single words and pairs of neighbours
    (``not_good``); the paper has 473 853. ``fraction`` is the share of each class and domain (the paper has .1, .3 and
    .5); draws of one ``seed`` are nested, and the same whatever the source of the files. ``features`` are options of
    :func:`~paper.datasets.text.text_features`. ``tasks`` are the names of the domains, ``rows`` numbers of reviews
    sorted by domain, class and text. The counts stay in memory (some 50 MB) until the process ends. On plain features
    every method stays near chance: what the domains share most is the length of a review.
    """
    counts, terms, cells = _review_counts()
    rows = draw_fraction(cells, fraction, np.random.default_rng(seed))
    data, feature_names = text_features(counts[rows], terms, **features)
    tasks = np.array(DOMAINS)[cells[rows] // len(POLARITIES)]
    return TaskData(data, cells[rows] % len(POLARITIES), tasks, POLARITIES, feature_names, rows)


@lru_cache(maxsize=1)
def _review_counts() -> tuple[Any, NDArray[Any], NDArray[np.int64]]:
    """Counts of terms in every review, the terms, and domain × polarity of every review as one number."""
    reviews = obtain(_FILES, _parse)
    vectorizer = DictVectorizer(dtype=np.int64)
    counts = sp.csr_array(vectorizer.fit_transform(_terms_of(polarity, line) for _, polarity, line in reviews))
    counts.sort_indices()
    cells = [DOMAINS.index(domain) * len(POLARITIES) + POLARITIES.index(polarity) for domain, polarity, _ in reviews]
    return counts, vectorizer.get_feature_names_out(), np.array(cells, dtype=np.int64)


def _terms_of(polarity: str, line: bytes) -> Counter[str]:
    # the authors' files are UTF-8; the last token is the label
    *tokens, label = line.decode().split(" ")
    if label != f"#label#:{polarity}":
        raise ValueError(f"a {polarity} review ends with {label!r} in place of its label.")
    found: Counter[str] = Counter()
    for token in tokens:
        # a term may hold colons itself
        term, _, count = token.rpartition(":")
        found[term] += int(count)
    return found


def _parse(path: Path) -> list[Review]:
    reviews: list[Review] = []
    for match, content in read_members(path, _MEMBER):
        reviews += [(match[1], match[2], line.strip()) for line in content.splitlines() if line.strip()]
    reviews.sort()
    parts = [part for domain, polarity, line in reviews for part in (domain.encode(), polarity.encode(), line)]
    check_content(parts, _CONTENT, "Multi-Domain Sentiment", str(path))
    return reviews
