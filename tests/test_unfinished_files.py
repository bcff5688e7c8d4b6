"""What is being written is left alone, what a killed process left is removed, and results moved aside come back."""

import os
import re

import pytest

from mtclust._atomic import atomic_write, exchange
from mtclust._in_use import fresh_mark, remove_abandoned
from mtclust.app.commands import output
from mtclust.app.commands.output import staged_directory
from mtclust.exceptions import CommandError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files are locked the POSIX way")
MARK = fresh_mark()
ABANDONED = f"{MARK}.tmp"


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_an_abandoned_file_is_removed_by_the_next_write_there(tmp_path):
    (tmp_path / ABANDONED).write_bytes(b"half")
    with atomic_write(tmp_path / "model") as stream:
        stream.write(b"whole")
    assert names(tmp_path) == ["model"]


def test_a_file_that_is_being_written_is_left_alone(tmp_path):
    with atomic_write(tmp_path / "first") as first:
        first.write(b"1")
        with atomic_write(tmp_path / "second") as second:
            second.write(b"2")
        assert len(names(tmp_path)) == 2
        assert names(tmp_path)[1] == "second"
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == {"first": b"1", "second": b"2"}


@pytest.mark.parametrize(
    "name",
    ["notes.tmp", ".mtclust-0123.tmp", f"x{MARK}.tmp", ".mtclust-0badc0de-01234567.tmp"],
    ids=["another ending", "too short", "something before it", "another machine"],
)
def test_files_of_other_names_and_other_machines_are_left_alone(tmp_path, name):
    (tmp_path / name).write_bytes(b"mine")
    with atomic_write(tmp_path / "model") as stream:
        stream.write(b"whole")
    assert (tmp_path / name).read_bytes() == b"mine"


def test_links_and_pipes_of_such_a_name_are_neither_followed_nor_waited_for(tmp_path):
    elsewhere = tmp_path / "thesis"
    elsewhere.write_text("ten years of work")
    (tmp_path / "x").symlink_to(elsewhere)
    os.mkfifo(tmp_path / "xx")
    remove_abandoned(tmp_path, re.compile("x+"))
    assert elsewhere.read_text() == "ten years of work"
    assert (tmp_path / "x").is_symlink()


def test_a_directory_that_is_being_filled_is_left_alone_and_an_abandoned_one_removed(tmp_path):
    out = tmp_path / "out"
    (tmp_path / f".out{MARK}").mkdir()
    (tmp_path / f".other{MARK}").mkdir()
    with staged_directory(out, overwrite=True) as first:
        assert names(tmp_path) == sorted([f".other{MARK}", first.name])
        assert replaced(tmp_path, "second") == "second"
        (first / "labels.csv").write_text("first")
    assert (out / "labels.csv").read_text() == "first"
    assert names(tmp_path) == [f".other{MARK}", "out"]


def test_two_directories_trade_places(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this system cannot exchange two directories in one step")
    assert names(tmp_path / "a") == ["b"]
    assert names(tmp_path / "b") == ["a"]
    assert not exchange(tmp_path / "a", tmp_path / "nothing")


def replaced(tmp_path, content):
    with staged_directory(tmp_path / "out", overwrite=True) as stage:
        (stage / "labels.csv").write_text(content)
    return (tmp_path / "out" / "labels.csv").read_text()


def test_results_are_replaced_in_two_steps_where_they_cannot_trade_places(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "exchange", lambda first, second: False)
    assert replaced(tmp_path, "old") == "old"
    assert replaced(tmp_path, "new") == "new"
    assert names(tmp_path) == ["out"]


def test_results_that_a_kill_between_the_two_steps_left_aside_come_back(tmp_path):
    """Also when the next run fails."""
    aside = tmp_path / ".out.mtclust-earlier"
    aside.mkdir()
    (aside / "labels.csv").write_text("old")
    with (
        pytest.raises(CommandError, match="already holds results"),
        staged_directory(tmp_path / "out", overwrite=False),
    ):
        pass
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "labels.csv").read_text() == "old"


def test_what_is_aside_is_removed_once_there_are_new_results(tmp_path):
    aside = tmp_path / ".out.mtclust-earlier"
    assert replaced(tmp_path, "new") == "new"
    aside.mkdir()
    assert replaced(tmp_path, "newer") == "newer"
    assert names(tmp_path) == ["out"]
