"""Ctrl-C and a request to end, at random moments and at every operation on a file: tidy, and with their exit codes."""

import signal
import sys

import pytest
from kill_helpers import CODES, WANTED, clear, contents, count, defects, leftovers, moments
from kill_tasks import fit_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and POSIX signals")
parametrize_signals = pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=lambda sent: sent.name)


def untidy(ended, sent, place):
    """Everything that a command should not have left or said when it was ended."""
    if ended.status not in (0, *CODES[sent]):
        yield f"exit status {ended.status}"
    if "Traceback" in ended.printed or "Error" in ended.printed:
        yield f"said {ended.printed}"
    if ended.status == 130 and ended.printed != "mtclust: interrupted\n":
        yield f"said {ended.printed}"
    if leftovers(place):
        yield f"left {[path.name for path in leftovers(place)]}"


@parametrize_signals
@pytest.mark.parametrize("earlier", [False, True], ids=["first", "overwrite"])
def test_fit_leaves_the_earlier_results_or_new_ones(server, fitted, tmp_path, earlier, sent):
    data, old, new = fitted
    place = tmp_path / "place"
    out = place / "out"
    task = ("command", *fit_command(data, out, *(["--overwrite"] if earlier else [])))
    kept = [contents(path)["labels.csv"] for path in (new, old)]

    def prepare():
        clear(place, earlier=old if earlier else None)

    def run(**fate):
        prepare()
        ended = server.run(*task, **fate, root=str(place), signal=int(sent))
        count("after" if ended.status == 0 else "before" if ended.status in CODES[sent][1:] else "during")
        found = contents(place)
        wrong = list(untidy(ended, sent, place))
        if found and (len(found) != 3 or found["out/labels.csv"] not in kept):
            wrong.append(f"files {sorted(found)}")
        if not found and (earlier or ended.status == 0):
            wrong.append("no results")
        return ended.status, [f"{fate}: {defect}" for defect in wrong]

    prepare()
    duration = server.run(*task).seconds
    wrong = []
    for fraction in moments(f"fit {sent} {earlier}", 0.05, 1):
        wrong += run(delay=fraction * duration)[1]
    # without MTCLUST_KILLS the two signals take turns: each operation meets one of them
    step = 1 if WANTED else 2
    number, status = step - (sent == signal.SIGTERM) % step, 1
    while status:
        status, found = run(event=number)
        wrong += found
        number += step
    assert defects(wrong) == []


@parametrize_signals
def test_predict_leaves_the_earlier_file_or_the_new_one(server, fitted, tmp_path, sent):
    data, _, model = fitted
    place = tmp_path / "place"
    place.mkdir()
    out = place / "clusters.csv"
    task = ("command", "predict", str(model), str(data), "--out", str(out), "--overwrite")
    duration = server.run(*task).seconds
    whole = out.read_bytes()
    wrong = []
    for fraction in moments(f"predict {sent}", 0.04, 3):
        out.write_bytes(b"earlier")
        ended = server.run(*task, delay=fraction * duration, signal=int(sent))
        count("after" if ended.status == 0 else "before" if out.read_bytes() == b"earlier" else "during")
        wrong += untidy(ended, sent, place)
        if contents(place) not in ({out.name: whole}, {out.name: b"earlier"}):
            wrong.append(f"{fraction}: {sorted(contents(place))}")
    assert defects(wrong) == []
