"""Where ``mtclust fit`` writes: whole results or none, nothing of others replaced, nothing left behind."""

import errno
import os
from pathlib import Path

import pytest
from table_helpers import error_of, fit, run_cli, shop_rows, write_table

from mtclust.app.cli import RESULT_FILES

QUICK = ("--quiet", "--sizes", "balanced", "--kernel", "linear", "--method", "dstc")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


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


def test_other_files_in_the_directory_stay_as_they_are(shops, tmp_path):
    """The directory itself is never replaced: it may be where the shell stands, or where a disk is mounted."""
    out = tmp_path / "home"
    out.mkdir()
    (out / "thesis.txt").write_text("ten years of work")
    before = out.stat().st_ino
    for _ in range(2):
        assert fit(shops, out, "--overwrite", *QUICK) == 0
    assert (out / "thesis.txt").read_text() == "ten years of work"
    assert out.stat().st_ino == before
    assert names(out) == sorted([*RESULT_FILES, "thesis.txt"])


def test_results_go_into_the_directory_where_the_shell_stands(shops, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fit(shops, ".", *QUICK) == 0
    assert names(tmp_path) == sorted([*RESULT_FILES, "shops.csv"])
    assert os.path.samefile(".", tmp_path)


@pytest.mark.parametrize("command", ["fit", "predict", "demo"])
def test_an_empty_name_is_not_the_current_directory(command, shops, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = {"fit": ["shops.csv"], "predict": ["shops.csv", "shops.csv"], "demo": []}[command]
    with pytest.raises(SystemExit) as caught:
        run_cli(command, *data, "--out", "")
    assert caught.value.code == 2
    assert "argument --out: '' is no name; the current directory is '.'" in capsys.readouterr().err
    assert names(tmp_path) == ["shops.csv"]


@pytest.fixture
def no_fit(monkeypatch):
    """What is wrong with the output is found before anything is computed."""
    monkeypatch.setattr("mtclust.app.cluster.cluster", lambda *_, **__: pytest.fail("the fit was begun"))


@pytest.mark.parametrize("exists", [True, False])
def test_a_place_that_cannot_be_written_is_found_out_before_the_fit(
    shops, tmp_path, capsys, no_fit, monkeypatch, exists
):
    out = tmp_path / "out"
    if exists:
        out.mkdir()

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(out))

    monkeypatch.setattr(os, "mkdir", refuse)
    assert fit(shops, out, *QUICK) == 1
    assert f"--out {out} cannot be written: Read-only file system. Choose another place." in error_of(capsys)


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

    monkeypatch.setattr("mtclust.app.report.page.render_report", fail)
    assert fit(shops, tmp_path / "out", "--quiet") == 1
    assert "unexpected RuntimeError: the power went" in error_of(capsys)
    assert list(tmp_path.iterdir()) == [shops]
