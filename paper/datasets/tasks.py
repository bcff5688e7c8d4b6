"""The paper's data sets as tasks: draws of UCI pendigits, fractions of 20 Newsgroups and of Multi-Domain Sentiment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from mtclust.datasets import TaskData, one_per
from paper.datasets.files import DataFile, check_content, draw_fraction, obtain, read_members, scale_columns
from paper.datasets.text import porter_stem, text_features

# --- pendigits

#: the digits of tasks 1 to 3 and of tasks 4 to 6
DIGIT_GROUPS = ((0, 3, 6, 8, 9), (1, 2, 4, 5, 7))
#: draws of each group
TASKS_PER_GROUP = 3
#: the tasks of each job, numbered as in the paper
JOBS = {1: (1, 2, 3), 2: (4, 5, 6), 3: (1, 2, 3, 4, 5, 6)}

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/pendigits"
PEN_TRAIN, PEN_TEST = (
    DataFile(f"pendigits/{name}", sha256, f"{_UCI}/{name}")
    for name, sha256 in {
        "pendigits.tra": "e2b9eb9f0d0467e2b64a4816a3420edf2b8043447576f4b84337aba44a9f97d3",
        "pendigits.tes": "8bd03229c5c5291fefe43e45465dd948d2645bf23328b9d993e0b777666b2015",
    }.items()
)
#: of the rows, one byte per number, training file before test file
PEN_CONTENT = "167121c34cccba273b4a2de0e2a152ae98aa4f80ce582ec37ef82dac0eab4eaf"
#: two coordinates of eight points, to which a pen stroke is resampled
_PEN_FEATURES = 16
_DIGITS = tuple(map(str, range(10)))


def fetch_pendigits() -> TaskData:
    """All 10 992 rows of pendigits in their canonical order, as one task: raw integers, ``target`` is the digit.

    The order is pendigits.tra followed by pendigits.tes: the order the row numbers in :attr:`TaskData.rows` count in.
    """
    table = _read_table()
    tasks, rows = np.zeros(len(table), dtype=np.int64), np.arange(len(table))
    return TaskData(table[:, :_PEN_FEATURES], table[:, _PEN_FEATURES], tasks, _DIGITS, None, rows)


def fetch_pendigits_tasks(job: int = 1, seed: int = 0, *, rows_per_class: int | Sequence[int] = 20) -> TaskData:
    """The paper's jobs on pendigits: tasks 1 to 3 hold the digits 0, 3, 6, 8, 9, tasks 4 to 6 the digits 1, 2, 4, 5, 7.

    All six tasks are drawn once per seed, so that the jobs of one seed are paired: Job 3 holds the rows of Jobs 1 and
    2. Rows within a task are distinct; two tasks of one group are separate draws and may share a row.

    ``seed`` says which draw, the same whatever the source of the files; ``rows_per_class`` the rows of each digit in a
    task, or one number per digit of the group (in increasing order). Each feature is mapped to [0, 1] over the rows of
    the job, as in the paper. ``tasks`` has the paper's task numbers, ``rows`` those of :func:`fetch_pendigits`.
    """
    if job not in JOBS:
        raise ValueError(f"job must be 1, 2 or 3; got {job!r}.")
    table = _read_table()
    digits = table[:, _PEN_FEATURES]
    sizes = one_per("rows_per_class", rows_per_class, "classes", len(DIGIT_GROUPS[0]), 1)
    rng, drawn = np.random.default_rng(seed), []
    for group in DIGIT_GROUPS:
        pools = [np.flatnonzero(digits == digit) for digit in group]
        for digit, pool, size in zip(group, pools, sizes):
            if size > len(pool):
                raise ValueError(
                    f"rows_per_class asks for {size} rows of digit {digit}, but there are {len(pool)}; ask for fewer."
                )
        for _ in range(TASKS_PER_GROUP):
            drawn.append(np.concatenate([rng.choice(pool, size, replace=False) for pool, size in zip(pools, sizes)]))
    rows = np.concatenate([drawn[task - 1] for task in JOBS[job]])
    data, tasks = scale_columns(table[rows, :_PEN_FEATURES]), np.repeat(JOBS[job], sum(sizes))
    return TaskData(data, digits[rows], tasks, _DIGITS, None, rows)


def _read_table() -> NDArray[np.int64]:
    table = np.concatenate([obtain([file], _parse_digits) for file in (PEN_TRAIN, PEN_TEST)])
    check_content([[table.astype(np.uint8).tobytes()]], PEN_CONTENT, "pendigits", "its two files")
    return table


def _parse_digits(path: Path) -> NDArray[np.int64]:
    try:
        table = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not a table of integers separated by commas: {error}") from error
    if table.shape[1] != _PEN_FEATURES + 1:
        raise ValueError(f"{path.name} has {table.shape[1]} columns; expected {_PEN_FEATURES} features and the digit.")
    return table


# --- newsgroups and sentiment

#: counts of terms in every text in canonical order, and the class of every text, −1 where no task has it
Corpus = tuple[Any, NDArray[np.int64]]

#: the paper's table: the classes of tasks 1 to 6
NEWSGROUP_TASKS = (
    ("comp.sys.mac.hardware", "rec.sport.hockey", "sci.electronics"),
    ("comp.sys.ibm.pc.hardware", "rec.sport.baseball", "sci.crypt"),
    ("comp.windows.x", "rec.autos", "talk.politics.guns"),
    ("comp.os.ms-windows.misc", "sci.med", "talk.politics.mideast"),
    ("rec.motorcycles", "sci.space", "talk.politics.misc"),
    ("misc.forsale", "alt.atheism", "soc.religion.christian"),
)
_GROUPS = tuple(group for task in NEWSGROUP_TASKS for group in task)

#: terms of the paper's matrix
VOCABULARY_SIZE = 26_214

MESSAGE_FILES = (
    DataFile("20news/20news-bydate.tar.xz", "bcd71af20087ecb37810f5ea1242330c59a0107f33c31f0a5f8685db008b79ce"),
    # scikit-learn's source and checksum of the same messages
    DataFile(
        "20news/20news-bydate.tar.gz",
        "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        "https://ndownloader.figshare.com/files/5975967",
    ),
)
#: of newsgroup, number and text of every message, in canonical order
MESSAGE_CONTENT = "f76d599af5c630d5ad9086175fe2fa7882c6cd6712d2fd313d9c0fde241cc064"
_MESSAGE = re.compile(r"20news-bydate-(?:train|test)/([a-z.\-]+)/(\d+)")
#: of messages: each byte is a character, so that text and bytes are one
_ENCODING = "latin-1"
_LETTERS = re.compile(r"[a-z]{2,}")

#: the tasks and the classes of the reviews
DOMAINS = ("books", "dvd", "electronics", "kitchen")
POLARITIES = ("negative", "positive")

REVIEW_FILES = (
    DataFile("sentiment/processed_acl.tar.xz", "6411b2a565b166410d819c878ad677f734cd23ab0bc6f4a5949af63292977b7c"),
    # the authors' archive, with unlabelled reviews besides; no checksum is published, its labelled reviews are checked
    DataFile(
        "sentiment/processed_acl.tar.gz",
        None,
        "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/processed_acl.tar.gz",
    ),
)
#: of domain, polarity and line of every labelled review, in canonical order
REVIEW_CONTENT = "d14a017dbae93c5d5e3b1ec2620a57561eccc9212eab7981475ff44621083da9"
_REVIEW = re.compile(rf"(?:.*/)?({'|'.join(DOMAINS)})/({'|'.join(POLARITIES)})\.review")


def fetch_newsgroups_tasks(fraction: float = 0.05, seed: int = 0, **features: Any) -> TaskData:
    """The paper's job on 20 Newsgroups: six tasks of three newsgroups each, :data:`NEWSGROUP_TASKS`.

    Tasks 1 and 2 are closely related, 1 to 5 somewhat, 6 is an outlier. Terms are Porter stems of words of two letters
    or more without English stop words, the 26 214 that occur in most messages of the whole collection; this only
    **approximates** the paper's matrix of 26 214 terms, which is not published with it. Messages are whole: their
    headers have lost the newsgroup's name in all but 131 of 18 846, but still tell sender, organisation and subject.

    ``fraction`` is the share of each class (the paper has .05, .1, .2 and .4); draws of one ``seed`` are nested, and
    the same whatever the source of the files. ``features`` are options of :func:`~paper.datasets.text.text_features`.
    ``tasks`` has the paper's task numbers; ``target`` counts through them, so that ``target % 3`` is the position in
    the task; ``rows`` are numbers of messages sorted by newsgroup and number. The counts of the whole collection stay
    in memory (some 25 MB) until the process ends.
    """
    data, classes, rows = _drawn(newsgroup_counts(), fraction, seed, features)
    return TaskData(data, classes, classes // len(NEWSGROUP_TASKS[0]) + 1, _GROUPS, None, rows)


def fetch_sentiment_tasks(fraction: float = 0.1, seed: int = 0, **features: Any) -> TaskData:
    """Product reviews of four kinds (books, dvd, electronics, kitchen), 1000 positive and 1000 negative each.

    Blitzer, Dredze and Pereira 2007, processed_acl: counts of 473 856 single words and pairs of neighbours
    (``not_good``); the paper has 473 853. ``fraction`` is the share of each class and domain (the paper has .1, .3 and
    .5); draws of one ``seed`` are nested, and the same whatever the source of the files. ``features`` are options of
    :func:`~paper.datasets.text.text_features`. ``tasks`` are the names of the domains, ``rows`` numbers of reviews
    sorted by domain, class and text. The counts stay in memory (some 50 MB) until the process ends. On plain features
    every method stays near chance: what the domains share most is the length of a review.
    """
    data, cells, rows = _drawn(review_counts(), fraction, seed, features)
    tasks = np.array(DOMAINS)[cells // len(POLARITIES)]
    return TaskData(data, cells % len(POLARITIES), tasks, POLARITIES, None, rows)


def _drawn(corpus: Corpus, fraction: float, seed: int, features: dict[str, Any]) -> tuple[Any, ...]:
    """A fraction of each class, sorted by class: features, classes, numbers of the rows."""
    counts, classes = corpus
    used = np.flatnonzero(classes >= 0)
    rows = used[draw_fraction(classes[used], fraction, np.random.default_rng(seed))]
    rows = rows[np.argsort(classes[rows], kind="stable")]
    return text_features(counts[rows], **features), classes[rows], rows


@lru_cache(maxsize=1)
def newsgroup_counts() -> Corpus:
    """Of every message, by newsgroup and number; a class is a position in the table of the tasks."""
    # what scikit-learn's loader may have stored before is not used: it is a pickle, which could execute code
    messages = obtain(MESSAGE_FILES, _parse_messages)
    stem = lru_cache(maxsize=None)(porter_stem)

    def terms_of(text: str) -> list[str]:
        return [stem(word) for word in _LETTERS.findall(text.lower()) if word not in ENGLISH_STOP_WORDS]

    texts = (text.decode(_ENCODING) for _, _, text in messages)
    counts = sp.csr_array(CountVectorizer(analyzer=terms_of).fit_transform(texts))
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    # ties in the order of the alphabet
    frequent = np.sort(np.argsort(-frequency, kind="stable")[:VOCABULARY_SIZE])
    classes = [_GROUPS.index(group) if group in _GROUPS else -1 for group, _, _ in messages]
    return sp.csr_array(counts[:, frequent]), np.array(classes, dtype=np.int64)


def _parse_messages(path: Path) -> list[tuple[str, int, bytes]]:
    """Newsgroup, number in the newsgroup and text of every message, in canonical order."""
    messages = sorted((match[1], int(match[2]), text) for match, text in read_members(path, _MESSAGE))
    check_content(messages, MESSAGE_CONTENT, "20 Newsgroups", str(path))
    return messages


@lru_cache(maxsize=1)
def review_counts() -> Corpus:
    """Of every review, by domain, polarity and text; a class is domain × polarity as one number."""
    reviews = obtain(REVIEW_FILES, _parse_reviews)
    terms = (_terms_of(polarity, line) for _, polarity, line in reviews)
    counts = sp.csr_array(DictVectorizer(dtype=np.int64).fit_transform(terms))
    counts.sort_indices()
    cells = [DOMAINS.index(domain) * len(POLARITIES) + POLARITIES.index(polarity) for domain, polarity, _ in reviews]
    return counts, np.array(cells, dtype=np.int64)


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


def _parse_reviews(path: Path) -> list[tuple[str, str, bytes]]:
    """Domain, polarity and line of every labelled review, in canonical order."""
    files = [(match[1], match[2], content.splitlines()) for match, content in read_members(path, _REVIEW)]
    reviews = sorted((d, polarity, line.strip()) for d, polarity, lines in files for line in lines if line.strip())
    check_content(reviews, REVIEW_CONTENT, "Multi-Domain Sentiment", str(path))
    return reviews
