"""Killed at random moments and at every operation on a file: nothing finished is lost, nothing half is in its place."""

import itertools
import shutil
import signal
import sys

import pytest
from kill_helpers import (
    CODES,
    WANTED,
    clear,
    contents,
    count,
    defects,
    finished_lines,
    leftovers,
    moments,
    whole_results,
    without_seconds,
)
from kill_tasks import fit_command

import mtclust

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and POSIX signals")
KILL = int(signal.SIGKILL)


def run_until_ended_and_again(server, task, directory, fractions, signals=(signal.SIGKILL,)):
    """End runs of an experiment again and again; each goes on where the last ended, and ends with the same files.

    Yields a description of everything that was lost.
    """
    name, arguments = task
    untouched, out = directory / "whole", directory / "killed"
    duration = server.run(name, *arguments(untouched)).seconds
    (whole,) = untouched.rglob("runs.csv")
    table, reference = out / whole.relative_to(untouched), without_seconds(whole)
    assert len(reference) > 10
    before = []
    for fraction, sent in zip(fractions, itertools.cycle(signals)):
        ended = server.run(name, *arguments(out), delay=fraction * duration, signal=int(sent))
        lines = finished_lines(table)
        lost = set(before) - set(lines)
        if lost:
            yield f"{len(lost)} finished rows lost: {sorted(lost)[0]}"
        if ended.status == 0:
            count("after")
            if without_seconds(table) != reference:
                yield "another table than that of a run without kills"
            if {*contents(out)} != {*contents(untouched)}:
                yield f"other files than those of a run without kills: {sorted(contents(out))}"
            shutil.rmtree(out)
            before = []
            continue
        count("during" if len(lines) > len(before) or leftovers(out) else "before")
        if ended.status not in CODES[sent] or "Traceback" in ended.printed:
            yield f"ended with {ended.status}: {ended.printed}"
        if ended.status == 130 and not f"\n{ended.printed}".endswith("\nmtclust: interrupted\n"):
            yield f"said {ended.printed}"
        if sent != signal.SIGKILL and leftovers(out):
            yield f"left {leftovers(out)}"
        before = lines
    ended = server.run(name, *arguments(out))
    if ended.status or without_seconds(table) != reference or set(before) - set(finished_lines(table)):
        yield f"not finished after the last kill: {ended.printed}"


@pytest.mark.parametrize(("n_jobs", "share", "few"), [(1, 0.3, 6), (2, 0.03, 1)])
def test_experiment_loses_no_finished_row(server, tmp_path, n_jobs, share, few):
    def arguments(out):
        return str(out / "toy"), n_jobs

    found = run_until_ended_and_again(server, ("toy", arguments), tmp_path, moments(f"toy {n_jobs}", share, few))
    assert defects(found) == []


def test_reproduce_loses_no_finished_row(server, tmp_path):
    def arguments(out):
        return "reproduce", "transfer", "--quick", "--out", str(out)

    found = run_until_ended_and_again(
        server, ("command", arguments), tmp_path, moments("reproduce", 0.06, 3), list(CODES)
    )
    assert defects(found) == []


def fates(name, duration, share, few):
    """Kills at random moments of a run, then at its operations on files one by one, until there are no more."""
    for fraction in moments(name, share, few):
        yield {"delay": fraction * duration, "signal": KILL}
    number = 1
    while (yield {"event": number, "signal": KILL}) != 0:
        number += 1


def killed_at_many_moments(server, name, task, place, check, prepare, share, few, next_time=()):
    """Kill a task that makes one thing at a time, on a directory prepared anew; ``check`` yields what is wrong.

    A run after a kill that left something meets no obstacle: tried once, or always with ``MTCLUST_KILLS``.
    """
    prepare()
    duration = server.run(task[0], *task[1:]).seconds
    all_fates = fates(name, duration, share, few)
    fate, tried_again = next(all_fates), False
    while fate is not None:
        prepare()
        ended = server.run(task[0], *task[1:], **fate, root=str(place))
        count("after" if ended.status == 0 else "during" if leftovers(place) else "before")
        yield from (f"{fate}: {defect}" for defect in check(ended.status == 0))
        if leftovers(place) and (WANTED or not tried_again):
            again, tried_again = server.run(task[0], *task[1:], *next_time), True
            if again.status:
                yield f"{fate}: the next run ended with {again.status}: {again.printed}"
            yield from (f"{fate}: next run: {defect}" for defect in check(True))
        try:
            fate = all_fates.send(ended.status)
        except StopIteration:
            fate = None


@pytest.mark.parametrize("earlier", [False, True], ids=["first", "overwrite"])
def test_results_of_fit_are_absent_or_whole(server, fitted, tmp_path, earlier):
    data, old, new = fitted
    place = tmp_path / "place"
    out = place / "out"

    def prepare():
        clear(place, earlier=old if earlier else None)

    def check(done):
        found = contents(out) if out.exists() else None
        if found is None:
            wrong = done or earlier
        else:  # a directory that is there gets one whole file after the other
            wrong = not whole_results(found, [new] if done or not earlier else [new, old])
        if wrong:
            yield f"{found and sorted(found)} in place of whole results"
        if {path.split("/")[0] for path in contents(place)} - {"out"}:
            yield f"files beside the results: {sorted(contents(place))}"

    task = ("command", *fit_command(data, out, *(["--overwrite"] if earlier else [])))
    found = killed_at_many_moments(
        server, f"fit {earlier}", task, place, check, prepare, 0.15, 2, next_time=["--overwrite"]
    )
    assert defects(found) == []


@pytest.mark.parametrize("earlier", [False, True], ids=["first", "overwrite"])
def test_labels_of_predict_are_absent_or_whole(server, fitted, tmp_path, earlier):
    data, _, model = fitted
    whole = tmp_path / "whole.csv"
    assert server.run("command", "predict", str(model), str(data), "--out", str(whole)).status == 0
    place = tmp_path / "place"
    task = ("command", "predict", str(model), str(data), "--out", str(place / "clusters.csv"), "--overwrite")
    check, prepare = one_file(place, "clusters.csv", whole.read_bytes(), b"earlier" if earlier else None)
    found = killed_at_many_moments(server, f"predict {earlier}", task, place, check, prepare, 0.12, 2)
    assert defects(found) == []


@pytest.mark.parametrize("earlier", [False, True], ids=["first", "overwrite"])
def test_a_saved_model_is_absent_or_whole(server, tmp_path, earlier):
    for name, n_clusters in (("old", 2), ("new", 3)):
        assert server.run("save", str(tmp_path / name), n_clusters).status == 0
        assert mtclust.load(tmp_path / name).n_clusters_ == n_clusters
    place = tmp_path / "place"
    task = ("save", str(place / "model"), 3)
    old = (tmp_path / "old").read_bytes() if earlier else None
    check, prepare = one_file(place, "model", (tmp_path / "new").read_bytes(), old)
    found = killed_at_many_moments(server, f"save {earlier}", task, place, check, prepare, 0.12, 3)
    assert defects(found) == []


def one_file(place, name, new, old):
    """How a directory with one file is prepared, and how it is seen that the file is the old or the new one."""

    def prepare():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if old is not None:
            (place / name).write_bytes(old)

    def check(done):
        found = contents(place)
        if found.get(name) not in ([new] if done else [new, old]):
            yield f"{name} is neither the old nor the new one"
        if set(found) - {name}:
            yield f"other files: {sorted(found)}"

    return check, prepare
