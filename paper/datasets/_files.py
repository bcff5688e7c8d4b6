"""Where data files are found, and how they are downloaded.

A file is looked for in ``data_home``, in the directory named by the environment variable ``MTCLUST_DATA``, in the
cache, and only then downloaded: into ``data_home`` if given, else into the cache. A download is checked under a
temporary name and moved into place when it is known to be good, so that no half or wrong file is ever left behind.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

#: the environment variable that names a directory of data files
DATA_VARIABLE = "MTCLUST_DATA"
#: bytes hashed at a time
_CHUNK = 1 << 20
#: bytes that a download may have: all files of the library are far below
LARGEST = 200 * 2**20
#: seconds without an answer after which a download is given up
_TIMEOUT = 30

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Attributes
    ----------
    path : str
        Its place below a data directory, e.g. ``"pendigits/pendigits.tra"``.
    sha256 : str or None
        Its checksum; None for a file that is judged by its parsed content alone.
    urls : tuple of str
        Where it can be downloaded, tried in order; empty for a file that is only looked for.
    """

    path: str
    sha256: str | None
    urls: tuple[str, ...] = ()


def as_text(data_home: str | os.PathLike[str] | None) -> str | None:
    """A path as text, which a cache can take as a key."""
    return None if data_home is None else os.fspath(data_home)


def search_directories(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """The directories a file is looked for in, in order."""
    given = [data_home, os.environ.get(DATA_VARIABLE), _cache_directory()]
    return [Path(directory).expanduser() for directory in given if directory]


def _cache_directory() -> Path | None:
    """Where downloads go without a ``data_home``; nowhere without pooch, which is needed to fill it."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("mtclust"))


def obtain(
    files: Sequence[DataFile],
    parse: Callable[[Path], Parsed],
    *,
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
) -> Parsed:
    """Find or download one of several interchangeable files, check it and return ``parse`` of it.

    ``parse`` must raise ``ValueError`` on content that is not right.
    """
    directories = search_directories(data_home)
    for directory in directories:
        for file in files:
            path = directory / file.path
            if path.is_file():
                _check_sha256(path, file)
                return parse(path)
    if not download_if_missing:
        raise FileNotFoundError(_what_to_do(files, directories, []))
    pooch = _import_pooch()
    target = Path(data_home).expanduser() if data_home else directories[-1]
    failures = []
    for file in files:
        for url in file.urls:
            try:
                return _download(pooch, file, url, target, parse)
            except OSError as error:
                failures.append(f"{url}: {error}")
    raise FileNotFoundError(_what_to_do(files, directories, failures))


def _download(pooch: Any, file: DataFile, url: str, target: Path, parse: Callable[[Path], Parsed]) -> Parsed:
    final = target / file.path
    final.parent.mkdir(parents=True, exist_ok=True)
    # in the directory of the file itself, so that the last step is a rename within one file system
    with tempfile.TemporaryDirectory(prefix=".download-", dir=final.parent) as scratch:
        fresh = Path(scratch) / final.name
        retrieve = pooch.HTTPDownloader(
            progressbar=_bounded_bar(fresh), timeout=_TIMEOUT, hooks={"response": refuse_open_line}
        )
        retrieve(url, str(fresh), None)
        _check_sha256(fresh, file, source=url)
        parsed = parse(fresh)
        os.replace(fresh, final)
    return parsed


def _bounded_bar(path: Path) -> Any:
    """A progress bar, as pooch has it, that ends a download when what was written of it grows too large."""
    import tqdm

    class Bounded(tqdm.tqdm):
        def update(self, n: float | None = 1) -> Any:
            # of the file, not of what was sent: a server may send a little that unfolds into a lot
            if path.stat().st_size > LARGEST:
                raise OSError(f"it sends more than the {LARGEST // 2**20} MiB that a file may have")
            return super().update(n)

    return Bounded(total=1, ncols=79, unit="B", unit_scale=True, leave=True)  # the total is set by pooch


def refuse_open_line(response: Any, *_: Any, **__: Any) -> None:
    """Refuse a server that sends an encrypted request on to an address without encryption."""
    if not response.is_redirect:
        return
    target = urllib.parse.urljoin(response.url, response.headers["location"])
    if response.url.startswith("https:") and not target.startswith("https:"):
        raise OSError(f"the server sends on to {target}, which is not encrypted")


def _import_pooch() -> Any:
    try:
        import pooch
        import tqdm  # noqa: F401  (pooch draws its progress bar with it)
    except ImportError as error:
        raise ImportError(
            'Downloading data needs pooch and tqdm: pip install "mtclust[data]". Without a network, point data_home or '
            f"the environment variable {DATA_VARIABLE} to a directory that holds the files."
        ) from error
    return pooch


def _check_sha256(path: Path, file: DataFile, source: str | None = None) -> None:
    if file.sha256 is None:
        return
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != file.sha256:
        found = f"{source or path} has the wrong checksum: sha256 {digest.hexdigest()}, expected {file.sha256}."
        if source is not None:
            raise ValueError(
                f"{found} The download was damaged, or the file has changed there; nothing was kept. Try again, or put "
                f"a good copy of {file.path} below data_home."
            )
        raise ValueError(f"{found} It is damaged or another version: delete it to have it downloaded again.")


def _what_to_do(files: Sequence[DataFile], directories: Sequence[Path], failures: Sequence[str]) -> str:
    names = " or ".join(file.path for file in files)
    urls = [url for file in files for url in file.urls]
    lines = [f"{names} was not found in any of: {', '.join(map(str, directories))}."]
    if failures:
        lines.append("It could not be downloaded: " + "; ".join(failures) + ".")
    else:
        lines.append("It was not downloaded because download_if_missing=False.")
    lines.append(
        f"Get it from {' or '.join(urls)}, put it below a directory of yours under that name, "
        f"and pass the directory as data_home or in the environment variable {DATA_VARIABLE}."
    )
    return "\n".join(lines)
