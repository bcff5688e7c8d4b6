"""A full disk or a read-only directory, from any operation on a file on: a clear error, no half file, exit status 1."""

import errno
import os
import shutil
import subprocess
import sys

import pytest
from kill_helpers import WANTED, clear, contents, count, defects, finished_lines, leftovers, whole_results
from kill_tasks import fit_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and limits on the size of files")
FAULTS = [errno.ENOSPC, errno.EROFS]
parametrize_faults = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: errno.errorcode[fault])


def unclear(ended, fault, out):
    """What is wrong with how a command that could not write has ended."""
    (*_, last) = ended.printed.strip().splitlines() or [""]
    if ended.status != 1 or "Traceback" in ended.printed or "unexpected" in ended.printed:
        yield f"exit status {ended.status}: {ended.printed}"
    elif not last.startswith("mtclust: ") or os.strerror(fault) not in last or str(out) not in last:
        yield f"the error does not say what could not be written and why: {last}"
    elif "hoose another place" not in last or ".mtclust-" in last:
        yield f"the error names no way out, or a file the user has never heard of: {last}"


def at_every_write(server, task, place, out, fault, prepare, allowed):
    """Let everything from the first, second, … operation on fail, until there is one no more.

    Without ``MTCLUST_KILLS`` the two faults take turns: each operation meets one of them.

    Yields what is wrong; ``allowed`` says of the files that are there afterwards whether they may be.
    """
    step = 1 if WANTED else 2
    number, status = step - FAULTS.index(fault) % step, 1
    while status:
        prepare()
        ended = server.run(*task, event=number, errno=fault, root=str(place))
        status = ended.status
        if status:
            count("full disks")
            yield from (f"{number}: {defect}" for defect in unclear(ended, fault, out))
            if not allowed(contents(place)) or leftovers(place):
                yield f"{number}: {sorted(contents(place))} and {leftovers(place)} are left"
        number += step
    if number < 4:
        yield "no operation failed"


@parametrize_faults
@pytest.mark.parametrize("earlier", [False, True], ids=["first", "overwrite"])
def test_fit(server, fitted, tmp_path, earlier, fault):
    data, old, new = fitted
    place = tmp_path / "place"
    out = place / "out"

    def prepare():
        clear(place, earlier=old if earlier else None)

    def allowed(found):
        """Nothing, or whole files: earlier results, or new ones if the disk failed between one and the next."""
        return (
            whole_results({name.removeprefix("out/"): found[name] for name in found}, [new, old])
            if earlier
            else not found
        )

    task = ("command", *fit_command(data, out, *(["--overwrite"] if earlier else [])))
    assert defects(at_every_write(server, task, place, out, fault, prepare, allowed)) == []


@parametrize_faults
def test_predict(server, fitted, tmp_path, fault):
    data, _, model = fitted
    place = tmp_path / "place"
    place.mkdir()
    out = place / "clusters.csv"
    task = ("command", "predict", str(model), str(data), "--out", str(out), "--overwrite")

    def prepare():
        out.write_bytes(b"earlier")

    assert defects(at_every_write(server, task, place, out, fault, prepare, {out.name: b"earlier"}.__eq__)) == []


def test_demo(server, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    out = place / "pictures"
    task = ("demo", str(out))

    def allowed(found):
        return found.keys() <= {"pictures/handwriting.csv"}

    assert defects(at_every_write(server, task, place, out, errno.ENOSPC, lambda: None, allowed)) == []
    assert sorted(path.name for path in out.iterdir()) == ["handwriting.csv", "result"]


@pytest.mark.parametrize(("fault", "number"), [(errno.EROFS, 1), *((errno.ENOSPC, number) for number in (3, 5, 9))])
def test_reproduce_keeps_the_rows_it_has(server, tmp_path, fault, number):
    out = tmp_path / "place" / "out"
    out.parent.mkdir()
    task = ("command", "reproduce", "transfer", "--quick", "--out", str(out))
    ended = server.run(*task, event=number, errno=fault, root=str(out.parent))
    count("full disks")
    assert defects(unclear(ended, fault, out)) == []
    assert leftovers(out.parent) == []
    table = out / "transfer" / "runs.csv"
    rows = table.read_bytes() if table.exists() else b""
    assert rows == b"" or rows.endswith(b"\n")


@pytest.mark.parametrize("limit", [0, 100, 2000])
def test_files_that_cannot_grow(server, fitted, tmp_path, limit):
    """The writes themselves fail, in the middle of a file."""
    data, _, model = fitted
    for number, (task, out) in enumerate(
        [
            (("command", *fit_command(data, tmp_path / "0" / "out")), tmp_path / "0" / "out"),
            (("command", "predict", str(model), str(data), "--out", str(tmp_path / "1" / "x")), tmp_path / "1" / "x"),
            (("demo", str(tmp_path / "2")), tmp_path / "2"),
        ]
    ):
        place = tmp_path / str(number)
        place.mkdir()
        ended = server.run(*task, limit=limit)
        if number == 1 and limit == 2000:
            assert ended.status == 0  # so small a file fits
            continue
        count("full disks")
        assert defects(unclear(ended, errno.EFBIG, out)) == []
        assert contents(place) == {}
        assert leftovers(place) == []


def test_a_table_that_cannot_grow_ends_with_a_whole_line(server, tmp_path):
    table = tmp_path / "runs.csv"
    assert server.run("toy", str(tmp_path), 1).status == 0
    lines = finished_lines(table)
    size = table.stat().st_size
    for limit in (size // 2, size // 2 + 7, 3 * size // 4):  # seconds are not of the same length in every run
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        ended = server.run("toy", str(tmp_path), 1, limit=limit)
        count("full disks")
        assert ended.status == 1
        assert f"{os.strerror(errno.EFBIG)}: {str(table)!r}" in ended.printed
        assert table.read_bytes().endswith(b"\n")
        assert 0 < len(finished_lines(table)) < len(lines)
        assert leftovers(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_output_that_nobody_can_keep(fitted):
    data, _, model = fitted
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "mtclust", "predict", str(model), str(data)],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    count("full disks")
    assert ended.returncode == 1
    assert ended.stderr.removeprefix("Reading …\n") == (  # a slow machine says what it is doing
        f"mtclust: the standard output cannot be written: {os.strerror(errno.ENOSPC)}. "
        "Make room there, or choose another place.\n"
    )
