"""Progress on the standard error: what is being done, which part of it, and for how long."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from mtclust.util.messages import LOGGER
from mtclust.util.system import require

#: a step is reported once it has taken this long, in seconds
FIRST_REPORT = 2.0
#: and again, where the output is no terminal, after every this many seconds
_NEXT_REPORT = 30.0


class _Latest(logging.Handler):
    """Keeps the part of a step that was reported last."""

    part = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.part = f" ({record.getMessage()})"


class Progress:
    """Reports steps: on a terminal by a line that counts the seconds, elsewhere by a line now and then.

    Parameters
    ----------
    stream : text stream, optional
        The standard error by default.
    quiet : bool
        Report nothing.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Report what happens inside the ``with`` block, if it takes long."""
        if self._quiet:
            yield
            return
        finished = threading.Event()
        latest = _Latest(logging.INFO)
        watcher = threading.Thread(target=self._watch, args=(title, latest, finished), daemon=True)
        watcher.start()
        level = LOGGER.level
        LOGGER.addHandler(latest)
        LOGGER.setLevel(logging.INFO)
        try:
            yield
        finally:
            LOGGER.setLevel(level)
            LOGGER.removeHandler(latest)
            finished.set()
            watcher.join()

    def _watch(self, title: str, latest: _Latest, finished: threading.Event) -> None:
        start = time.monotonic()
        if finished.wait(FIRST_REPORT):
            return
        if self._stream.isatty():
            self._count_seconds(title, latest, finished, start)
            return
        print(f"{title}{latest.part} …", file=self._stream, flush=True)
        while not finished.wait(_NEXT_REPORT):
            print(f"{title}{latest.part} … {time.monotonic() - start:.0f} s", file=self._stream, flush=True)

    def _count_seconds(self, title: str, latest: _Latest, finished: threading.Event, start: float) -> None:
        console: Any = require("rich.console", "cli").Console(file=self._stream)
        markup = require("rich.markup", "cli")
        with console.status("") as status:
            while True:
                elapsed = time.monotonic() - start
                status.update(f"{markup.escape(title + latest.part)} … [dim]{elapsed:.0f} s[/dim]")
                if finished.wait(0.5):
                    return
