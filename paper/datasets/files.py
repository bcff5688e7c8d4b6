"""The files of the paper's data: where they are found, downloaded by pooch, read and checked.

A file is looked for in the directory named by the environment variable ``MTCLUST_DATA`` and in the cache, into which it
is downloaded otherwise. Members of a tar archive are read into memory and never written, so that names such as
``../../x``, links and devices can do no harm.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mtclust.util.system import require

#: the environment variable that names a directory of data files
DATA_VARIABLE = "MTCLUST_DATA"

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class DataFile:
    """One file of a data set."""

    path: str  # below a data directory, e.g. "pendigits/pendigits.tra"
    sha256: str | None  # None for a file that is judged by its parsed content alone
    url: str = ""  # empty for a file that is only looked for


def obtain(files: Sequence[DataFile], parse: Callable[[Path], Parsed]) -> Parsed:
    """Find one of several interchangeable files, or download the last, check it and return ``parse`` of it.

    ``parse`` must raise ``ValueError`` on content that is not right; a download that it refuses is not kept.
    """
    given = os.environ.get(DATA_VARIABLE)
    for file in files if given else ():
        path = Path(given or "").expanduser() / file.path
        if path.is_file():
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if file.sha256 not in (None, digest):
                raise ValueError(f"{path} has the wrong checksum: sha256 {digest}, expected {file.sha256}.")
            return parse(path)
    pooch: Any = require("pooch", "data")
    *_, file = files
    final = cache_directory() / file.path
    try:
        pooch.retrieve(file.url, file.sha256 and f"sha256:{file.sha256}", final.name, final.parent)
    except OSError as error:
        raise FileNotFoundError(
            f"{' or '.join(file.path for file in files)} was not found in {given or 'the cache'} and could not be "
            f"downloaded: {file.url}: {error}.\nPut it below a directory of yours under that name, and name that in "
            f"the environment variable {DATA_VARIABLE}."
        ) from error
    try:
        return parse(final)
    except ValueError:
        final.unlink()
        raise


def cache_directory() -> Path:
    """Where downloads are kept."""
    return Path(require("pooch", "data").os_cache("mtclust"))


def read_members(path: Path, name: re.Pattern[str]) -> list[tuple[re.Match[str], bytes]]:
    """The regular files of an archive, compressed or not, whose whole name matches ``name``: match and content of each.

    A broken archive is a ``ValueError``.
    """
    members = []
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                match = name.fullmatch(member.name.removeprefix("./"))
                stream = archive.extractfile(member) if match and member.isreg() else None
                if match and stream:
                    members.append((match, stream.read()))
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise ValueError(
            f"{path.name} is a broken archive ({type(error).__name__}: {error}). Delete it to have it downloaded again."
        ) from error
    return members


def draw_fraction(target: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a random ``fraction`` of each class, sorted; at least one row of every class.

    A smaller fraction drawn with the same generator state is a subset of a larger one.
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1]; got {fraction}.")
    chosen = []
    for label in np.unique(target):
        rows = rng.permutation(np.flatnonzero(target == label))
        chosen.append(rows[: max(1, round(fraction * len(rows)))])
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def scale_columns(data: NDArray[Any]) -> NDArray[np.float64]:
    """Each column mapped to [0, 1] over the given rows; a constant column becomes 0."""
    low, high = data.min(axis=0), data.max(axis=0)
    width = np.where(high > low, high - low, 1)
    return np.asarray((data - low) / width, dtype=np.float64)


def check_content(records: Iterable[Sequence[Any]], expected: str, what: str, source: str) -> None:
    """Compare a hash of parsed rows, each some bytes, texts and numbers, with the one of the canonical data set.

    The bytes of a file may differ between sources (compression, extra members); the rows, in canonical order, may not:
    otherwise one seed would mean different draws in different places.
    """
    digest = content_hash(records)
    if digest != expected:
        raise ValueError(
            f"{what} read from {source} is not the expected data set: its rows have the sha256 {digest}, not "
            f"{expected}. The file is damaged or another version: delete it to have it downloaded again."
        )


def content_hash(records: Iterable[Sequence[Any]]) -> str:
    """sha256 of what rows hold, each part preceded by its length so that no two sequences share one stream."""
    digest = hashlib.sha256()
    for part in chain.from_iterable(records):
        content = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()
