"""What a long fit reports of itself: to the logger "mtclust", with ``verbose``, and on the command line."""

import logging
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from mtclust import DMTRC, DSTC
from mtclust.util.messages import counted, phase, reporting
from tests.conftest import gaussian_tasks

X, _, TASKS = gaussian_tasks(rows=18)
QUICK = {"kernel": "linear", "n_init": 1, "random_state": 0}
GIVEN = {"lambda1": 0.1, "sizes": "balanced", **QUICK}


def test_phases_are_logged_with_those_around_them_and_end_also_by_an_error(caplog):
    with caplog.at_level(logging.INFO, logger="mtclust"):
        with pytest.raises(ValueError, match="no"), phase("a"), phase("b"):
            raise ValueError("no")
        with phase("c"):
            pass
    with phase("below the level"):
        pass
    assert caplog.messages == ["a", "a, b", "c"]


def test_items_are_counted_when_they_are_taken(caplog):
    with caplog.at_level(logging.INFO, logger="mtclust"):
        items = counted(iter("xyz"), "item", 3)
        assert next(items) == "x"
        assert caplog.messages == ["item 1 of 3"]
        assert list(items) == ["y", "z"]


def test_two_fits_in_two_threads_do_not_speak_for_each_other(capsys):
    both = threading.Barrier(2)

    def silent():
        with reporting(SimpleNamespace(verbose=0)):
            both.wait()
            with phase("silent"):
                both.wait()

    thread = threading.Thread(target=silent)
    thread.start()
    with reporting(SimpleNamespace(verbose=1)):
        both.wait()
        items = counted("ab", "item", 2)
        next(items)
        both.wait()
    taker = threading.Thread(target=lambda: next(items))  # as joblib does
    taker.start()
    thread.join()
    taker.join()
    assert capsys.readouterr().out == "[SimpleNamespace] item 1 of 2\n[SimpleNamespace] item 2 of 2\n"


def test_a_fit_reports_which_choice_and_which_task_it_is_at(caplog):
    with caplog.at_level(logging.INFO, logger="mtclust"):
        DMTRC(3, coupling="full", **QUICK | {"n_init": 2}).fit(X, tasks=TASKS)
    assert any(text.startswith("choosing: ") for text in caplog.messages)
    assert any("clustering alone: task 2 of 3" in text for text in caplog.messages)
    assert any(text.startswith("choosing: ") and "clustering together" in text for text in caplog.messages)


def test_choosing_the_number_of_clusters_is_reported(caplog):
    with caplog.at_level(logging.INFO, logger="mtclust"):
        DSTC(range(2, 7), **GIVEN).fit(X, tasks=TASKS)
    assert any(text.startswith("choosing the number of clusters") for text in caplog.messages)


def test_cuts_are_reported(caplog):
    model = DSTC(3, solver="cutting-plane", solver_options={"max_cuts": 2, "init": "k-means"}, lambda1=0.1, **QUICK)
    with caplog.at_level(logging.INFO, logger="mtclust"):
        model.fit(X, tasks=TASKS)
    assert "cut 1 of 2" in caplog.messages


def test_verbose_prints_and_silence_prints_nothing(capsys):
    DSTC(3, verbose=1, **GIVEN).fit(X, tasks=TASKS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[DSTC] clustering alone: task 1 of 3"
    assert lines[-1].startswith("[DSTC] single tasks, labels: ")
    DSTC(3, **GIVEN).fit(X, tasks=TASKS)
    assert capsys.readouterr().out == ""


def test_more_verbose_prints_parts_of_parts(capsys):
    for verbose, printed in ((1, False), (2, True)):
        with reporting(SimpleNamespace(verbose=verbose)), phase("whole"), phase("part"):
            pass
        assert ("whole, part" in capsys.readouterr().out) == printed


def test_the_command_line_shows_what_is_under_way_where_it_is_asked_to():
    run = subprocess.run(
        [sys.executable, "-m", "mtclust", "fit", "none.csv", "--task-column", "a", "--out", "none", "--verbose"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.stderr.startswith("reading\nTraceback")
