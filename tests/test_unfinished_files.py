"""What is being written is left alone, and what a killed process left is removed."""

import os
import re

import pytest

from mtclust.app.commands import output
from mtclust.app.commands.output import staged_directory
from mtclust.persistence.atomic import atomic_write
from mtclust.persistence.in_use import fresh_mark, remove_abandoned

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
        assert replaced(tmp_path, "cluster: second") == "cluster: second"
        (first / "labels.csv").write_text("cluster: first")
    assert (out / "labels.csv").read_text() == "cluster: first"
    assert names(tmp_path) == [f".other{MARK}", "out"]


def replaced(tmp_path, content):
    with staged_directory(tmp_path / "out", overwrite=True) as stage:
        (stage / "labels.csv").write_text(content)
    return (tmp_path / "out" / "labels.csv").read_text()


def test_what_a_killed_run_left_in_a_directory_that_was_there_is_removed(tmp_path):
    out = tmp_path / "out"
    (out / MARK).mkdir(parents=True)
    (out / MARK / "labels.csv").write_text("half")
    assert replaced(tmp_path, "cluster: new") == "cluster: new"
    assert names(out) == ["labels.csv"]


def test_an_interrupt_between_two_files_lets_the_others_follow(tmp_path, monkeypatch):
    """Old and new results are not mixed where that can be helped."""
    out = tmp_path / "out"
    out.mkdir()
    calls, put_in_place = [], output._put_in_place

    def interrupted(fresh, target):
        calls.append(target.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        put_in_place(fresh, target)

    monkeypatch.setattr(output, "_put_in_place", interrupted)

    def write():
        with staged_directory(out, overwrite=False) as stage:
            for name in output.RESULT_FILES:
                (stage / name).write_text("new")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert names(out) == sorted(output.RESULT_FILES)
