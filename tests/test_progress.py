"""What a long fit tells of itself, to ``verbose`` and to the command line."""

import io
import time

import pytest

from mtclust import DMTRC, DSTC
from mtclust.app.commands import progress
from mtclust.util import progress as _progress
from mtclust.util.progress import counted, listening, phase
from tests.conftest import gaussian_tasks

X, _, TASKS = gaussian_tasks(rows=18)
QUICK = {"kernel": "linear", "n_init": 1, "random_state": 0}


def heard(fit):
    texts = []
    with listening(texts.append):
        fit()
    return texts


def test_phases_are_told_with_those_around_them_and_end_also_by_an_error():
    texts = []
    with listening(texts.append):
        with pytest.raises(ValueError, match="no"), phase("a"), phase("b"):
            raise ValueError("no")
        with phase("c"):
            pass
    with phase("unheard"):
        pass
    assert texts == ["a", "a, b", "c"]


def test_items_are_counted_when_they_are_taken():
    texts = []
    with listening(texts.append):
        items = counted(iter("xyz"), "item", 3)
        assert next(items) == "x"
        assert texts == ["item 1 of 3"]
        assert list(items) == ["y", "z"]


def test_a_fit_tells_which_choice_and_which_task_it_is_at():
    texts = heard(lambda: DMTRC(3, coupling="full", **QUICK | {"n_init": 2}).fit(X, tasks=TASKS))
    assert "choosing: E, linear" in texts
    assert "choosing: E, linear, clustering alone: task 2 of 3" in texts
    assert any(", coupled, clustering together" in text for text in texts)
    assert any("all rows as one task" in text for text in texts)


def test_choosing_the_number_of_clusters_tells_the_candidate():
    texts = heard(lambda: DSTC(range(2, 7), lambda1=0.1, sizes="balanced", **QUICK).fit(X, tasks=TASKS))
    assert any(text.startswith("choosing the number of clusters: tasks ") for text in texts)


def test_cuts_are_told():
    model = DSTC(3, solver="cutting-plane", solver_options={"max_cuts": 2, "init": "k-means"}, lambda1=0.1, **QUICK)
    assert "cut 1 of 2" in heard(lambda: model.fit(X, tasks=TASKS))


def test_verbose_prints_as_it_goes_and_silence_prints_nothing(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_SECONDS", 0.0)
    options = {"lambda1": 0.1, "sizes": "balanced", **QUICK}
    DSTC(3, verbose=1, **options).fit(X, tasks=TASKS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[DSTC] clustering alone: task 1 of 3"
    assert lines[-1].startswith("[DSTC] single tasks, labels: ")
    DSTC(3, **options).fit(X, tasks=TASKS)
    assert capsys.readouterr().out == ""


def test_verbose_prints_at_most_once_a_second(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_SECONDS", 1e6)
    DSTC(3, lambda1=0.1, sizes="balanced", verbose=1, **QUICK).fit(X, tasks=TASKS)
    assert "task 1 of 3" not in capsys.readouterr().out


def test_the_command_line_shows_the_part_that_is_under_way(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_REPORT", 0.01)
    monkeypatch.setattr(progress, "_NEXT_REPORT", 0.01)
    stream = io.StringIO()
    with progress.Progress(stream).step("Clustering"), phase("task 2 of 3"):
        deadline = time.monotonic() + 20
        while "(" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "Clustering (task 2 of 3) …" in stream.getvalue()
