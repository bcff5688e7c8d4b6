"""A plugin that notes which errors and warnings of the library the tests provoke and look at: ``make messages``.

    MTCLUST_MESSAGES=DIR python -m pytest -p tests.message_recorder
    python tools/error_messages.py DIR

An error counts if it reaches ``pytest.raises`` and the test looks at it (``match=``, or the caught error is used),
or if the command line says it; so does an error that one of these was raised from. A warning counts if it reaches
``pytest.warns``.
"""

import json
import os
from pathlib import Path

import pytest

import mtclust
from mtclust.app import cli

SOURCE = Path(mtclust.__file__).parent
_raised: set[tuple[str, int]] = set()
_warned: set[str] = set()
_raises, _warns, _in_words = pytest.raises, pytest.warns, cli._in_words


def note(error):
    """Keep the place where an error was raised, and those of the errors it was raised from."""
    seen = []
    while error is not None and error not in seen:
        seen.append(error)
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        if place is not None and Path(place.tb_frame.f_code.co_filename).is_relative_to(SOURCE):
            file = Path(place.tb_frame.f_code.co_filename).relative_to(SOURCE).as_posix()
            _raised.add((file, place.tb_lineno))
        error = error.__cause__ or error.__context__


class _Caught:
    """What ``pytest.raises`` gives, and whether it was looked at."""

    def __init__(self, info):
        self._info = info

    def __getattr__(self, name):
        found = getattr(self._info, name)
        note(self._info.value)
        return found


class _Raises:
    def __init__(self, context, looked_at):
        self._context, self._looked_at = context, looked_at

    def __enter__(self):
        return _Caught(self._context.__enter__())

    def __exit__(self, kind, value, place):
        expected = self._context.__exit__(kind, value, place)
        if expected and self._looked_at:
            note(value)
        return expected


class _Warns:
    def __init__(self, context):
        self._context = context

    def __enter__(self):
        self._records = self._context.__enter__()
        return self._records

    def __exit__(self, *error):
        _warned.update(str(record.message) for record in self._records)
        return self._context.__exit__(*error)


def raises(*arguments, **options):
    context = _raises(*arguments, **options)
    if len(arguments) > 1:  # with the function to call: its result is the error itself
        note(context.value)
        return context
    return _Raises(context, options.get("match") is not None)


def warns(*arguments, **options):
    return _Warns(_warns(*arguments, **options))


def in_words(error):
    note(error)
    return _in_words(error)


pytest.raises, pytest.warns, cli._in_words = raises, warns, in_words


def pytest_sessionfinish():
    directory = Path(os.environ["MTCLUST_MESSAGES"])
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{os.getpid()}.json").write_text(json.dumps({"raised": sorted(_raised), "warned": sorted(_warned)}))
