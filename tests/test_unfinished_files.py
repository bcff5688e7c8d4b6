"""What is being written has a name that says so, and disturbs neither another writer nor what is there."""

from mtclust.app.cli import staged_directory
from mtclust.persistence.atomic import atomic_write


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_two_writers_in_one_directory_do_not_disturb_each_other(tmp_path):
    with atomic_write(tmp_path / "first") as first:
        first.write(b"1")
        with atomic_write(tmp_path / "second") as second:
            second.write(b"2")
        unfinished, finished = names(tmp_path)
        assert unfinished.startswith(".mtclust-")
        assert finished == "second"
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == {"first": b"1", "second": b"2"}


def test_what_a_killed_process_left_is_no_obstacle(tmp_path):
    for place in (tmp_path, tmp_path / "out"):
        (place / ".mtclust-01234567.tmp").mkdir(parents=True)
    assert replaced(tmp_path, "cluster: new") == "cluster: new"
    assert names(tmp_path / "out") == [".mtclust-01234567.tmp", "labels.csv"]


def test_a_directory_that_another_run_is_filling_is_left_alone(tmp_path):
    with staged_directory(tmp_path / "out", overwrite=True) as first:
        assert replaced(tmp_path, "cluster: second") == "cluster: second"
        (first / "labels.csv").write_text("cluster: first")
    assert (tmp_path / "out" / "labels.csv").read_text() == "cluster: first"
    assert names(tmp_path) == ["out"]


def replaced(tmp_path, content):
    with staged_directory(tmp_path / "out", overwrite=True) as stage:
        (stage / "labels.csv").write_text(content)
    return (tmp_path / "out" / "labels.csv").read_text()
