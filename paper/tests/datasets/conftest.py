"""Where the tests of the data sets find files: a server on this machine, tiny archives, and the real data if there."""

from __future__ import annotations

import functools
import http.server
import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paper.datasets import files, tasks

WriteArchive = Callable[[Path, dict[str, bytes]], Path]


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """No data anywhere, an empty cache, nothing remembered; the value is the place of the cache."""
    cache = tmp_path / "cache"
    monkeypatch.delenv(files.DATA_VARIABLE, raising=False)
    monkeypatch.setattr(files, "cache_directory", lambda: cache)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit_learn_data"))
    # a proxy of this machine must not be asked for 127.0.0.1
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    _forget()
    yield cache
    _forget()


def _forget() -> None:
    tasks.newsgroup_counts.cache_clear()
    tasks.review_counts.cache_clear()


@pytest.fixture
def real_data() -> str:
    """The directory of the real data; skips the test where there is none."""
    directory = os.environ.get(files.DATA_VARIABLE)
    if not directory:
        pytest.skip(f"{files.DATA_VARIABLE} is not set: no real data here")
    return directory


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if not self.path.startswith("/cut/"):
            super().do_GET()
            return
        # a connection that breaks: half of what was promised
        content = Path(self.directory, self.path.removeprefix("/cut/")).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address and directory of a web server; below /cut/ its answers end half-way."""
    pytest.importorskip("pooch", reason='downloads need pip install "mtclust[data]"')
    directory = tmp_path / "server"
    directory.mkdir()
    handler = functools.partial(_QuietHandler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}", directory
        running.shutdown()
        thread.join()


@pytest.fixture
def write_archive() -> WriteArchive:
    def write(path: Path, members: dict[str, bytes]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return path

    return write
