"""Where ``mtclust fit`` writes: whole results or none, nothing of others replaced, nothing left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from table_helpers import error_of, fit, shop_rows, write_table


@pytest.fixture
def shops(tmp_path):
    return write_table(tmp_path / "shops.csv", shop_rows())


def test_other_results_are_only_replaced_on_request(shops, tmp_path, capsys):
    out = tmp_path / "out"
    assert fit(shops, out, "--quiet") == 0
    before = (out / "labels.csv").read_bytes()
    assert fit(shops, out, "--quiet", clusters=2) == 1
    assert "already holds results; choose another directory, or replace them with --overwrite" in error_of(capsys)
    assert (out / "labels.csv").read_bytes() == before
    assert fit(shops, out, "--quiet", "--overwrite", clusters=2) == 0
    assert (out / "labels.csv").read_bytes() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "shops.csv"]


def test_a_directory_with_other_files_is_never_replaced(shops, tmp_path, capsys):
    out = tmp_path / "home"
    out.mkdir()
    (out / "thesis.txt").write_text("ten years of work")
    assert fit(shops, out, "--overwrite") == 1
    assert "holds files that are not results of mtclust fit (thesis.txt)" in error_of(capsys)
    assert (out / "thesis.txt").read_text() == "ten years of work"


def test_an_output_directory_that_cannot_be_written_is_refused_before_the_fit(shops, tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    assert fit(shops, blocked / "inside") == 1
    error_of(capsys)
    assert fit(shops, blocked) == 1
    assert "is a file; give the name of a directory" in error_of(capsys)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system nobody can write to")
def test_a_read_only_output_directory_is_named(shops, capsys):
    assert fit(shops, "/proc/result") == 1
    assert "--out /proc/result cannot be written" in error_of(capsys)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent to the process as a POSIX signal")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_end_in_the_middle_leaves_nothing_behind(tmp_path, sent, code):
    data = write_table(tmp_path / "shops.csv", shop_rows(rows=400))
    command = [sys.executable, "-m", "mtclust", "fit", str(data), "--task-column", "shop", "--clusters", "auto"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    try:
        # it reports what it is doing once that takes long: it is in the middle of the fit then
        assert process.stderr.readline().startswith("Clustering 800 rows of 2 tasks")
        assert len(list(tmp_path.iterdir())) == 2, "the results are being made beside their place"
        process.send_signal(sent)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code
    assert "Traceback" not in errors
    assert output == ""
    assert list(tmp_path.iterdir()) == [data]


def test_a_link_to_the_output_directory_stays_a_link(shops, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for _ in range(2):
        assert fit(shops, tmp_path / "link", "--quiet", "--overwrite") == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "labels.csv").exists()


def test_an_error_leaves_no_new_directories(shops, tmp_path, capsys):
    assert fit(shops, tmp_path / "a" / "b" / "out", task_column="store") == 1
    error_of(capsys)
    assert list(tmp_path.iterdir()) == [shops]
    assert fit(shops, tmp_path / "a" / "b" / "out", "--quiet") == 0
    assert (tmp_path / "a" / "b" / "out" / "labels.csv").exists()


def test_a_crash_leaves_nothing_behind_and_is_named(shops, tmp_path, monkeypatch, capsys):
    def fail(*arguments, **keywords):
        raise RuntimeError("the power went")

    monkeypatch.setattr("mtclust.app.report.write_report", fail)
    assert fit(shops, tmp_path / "out", "--quiet") == 1
    assert "unexpected RuntimeError: the power went" in error_of(capsys)
    assert list(tmp_path.iterdir()) == [shops]
