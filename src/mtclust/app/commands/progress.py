"""Progress on the standard error: what is being done, which part of it, and for how long."""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from mtclust.util.messages import LOGGER

#: a step is reported once it has taken this long, in seconds
FIRST_REPORT = 2.0
#: and again after every this many seconds, in a line of its own or, on a terminal, in the same line
_NEXT_REPORT, _ON_TERMINAL = 30.0, 0.5


class Progress(logging.Handler):
    """Reports steps, and the part of a step that the library logged last.

    Parameters
    ----------
    stream : text stream, optional
        The standard error by default.
    quiet : bool
        Report nothing.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        super().__init__(logging.INFO)
        self._stream = sys.stderr if stream is None else stream
        self._quiet, self._part = quiet, ""

    def emit(self, record: logging.LogRecord) -> None:
        self._part = f" ({record.getMessage()})"

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Report what happens inside the ``with`` block, if it takes long."""
        if self._quiet:
            yield
            return
        finished, self._part = threading.Event(), ""
        watcher = threading.Thread(target=self._watch, args=(title, finished), daemon=True)
        watcher.start()
        level = LOGGER.level
        LOGGER.addHandler(self)
        LOGGER.setLevel(logging.INFO)
        try:
            yield
        finally:
            LOGGER.setLevel(level)
            LOGGER.removeHandler(self)
            finished.set()
            watcher.join()

    def _watch(self, title: str, finished: threading.Event) -> None:
        start, terminal = time.monotonic(), self._stream.isatty()
        if finished.wait(FIRST_REPORT):
            return
        first, width = True, shutil.get_terminal_size().columns - 1
        while True:
            line = f"{title}{self._part} …" + ("" if first and not terminal else f" {time.monotonic() - start:.0f} s")
            print(f"\r{line[:width]}\x1b[K" if terminal else line, end="" if terminal else "\n", file=self._stream)
            self._stream.flush()
            if finished.wait(_ON_TERMINAL if terminal else _NEXT_REPORT):
                break
            first = False
        if terminal:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
