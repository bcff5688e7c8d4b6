"""fetch_pendigits and fetch_pendigits_tasks; the real files are used where there are any."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from paper.datasets import fetch_pendigits, fetch_pendigits_tasks, tasks
from paper.datasets.files import DATA_VARIABLE, DataFile, scale_columns

FIRST_GROUP, SECOND_GROUP = [0, 3, 6, 8, 9], [1, 2, 4, 5, 7]


def test_canonical_order_is_training_file_then_test_file(real_data):
    digits = fetch_pendigits()
    assert digits.data.shape == (10992, 16)
    assert digits.data[0].tolist() == [47, 100, 27, 81, 57, 37, 26, 0, 0, 23, 56, 53, 100, 90, 40, 98]
    assert digits.target[0] == 8
    assert digits.data[7494].tolist() == [88, 92, 2, 99, 16, 66, 94, 37, 70, 0, 0, 24, 42, 65, 100, 100]
    assert digits.n_tasks == 1


def test_jobs_of_a_seed_are_paired(real_data):
    jobs = [fetch_pendigits_tasks(job, seed=5) for job in (1, 2, 3)]
    assert jobs[2].rows.tolist() == jobs[0].rows.tolist() + jobs[1].rows.tolist()
    assert [sorted(set(job.tasks.tolist())) for job in jobs] == [[1, 2, 3], [4, 5, 6], [1, 2, 3, 4, 5, 6]]


def test_tasks_hold_twenty_distinct_rows_of_each_digit(real_data):
    job = fetch_pendigits_tasks(3, seed=2)
    whole = fetch_pendigits()
    np.testing.assert_array_equal(scale_columns(whole.data[job.rows]), job.data)
    np.testing.assert_array_equal(whole.target[job.rows], job.target)
    for task in range(1, 7):
        rows = job.rows[job.tasks == task]
        assert len(set(rows.tolist())) == 100
        group = FIRST_GROUP if task <= 3 else SECOND_GROUP
        assert whole.target[rows].tolist() == np.repeat(group, 20).tolist()


def test_draws_are_those_of_the_published_objective_values(real_data):
    # a change of NumPy's random stream would show here: these rows are what figures elsewhere were computed on
    rows = fetch_pendigits_tasks(3, seed=100).rows
    assert rows[:5].tolist() == [8939, 6355, 6290, 9996, 8548]
    assert rows[100:105].tolist() == [10302, 5811, 7920, 587, 3603]
    digest = hashlib.sha256(",".join(map(str, rows.tolist())).encode()).hexdigest()
    assert digest == "643baf574ec5a439917e2f5fffc7379817c1bed6e7d77e04181058125884731b"


def test_scaling_is_over_the_rows_of_the_job(real_data):
    job = fetch_pendigits_tasks(1, seed=0)
    raw = fetch_pendigits().data[job.rows]
    np.testing.assert_array_equal(job.data.min(axis=0), 0)
    np.testing.assert_array_equal(job.data.max(axis=0), 1)
    low, high = raw.min(axis=0), raw.max(axis=0)
    np.testing.assert_allclose(job.data * (high - low) + low, raw)


def test_sizes_may_differ_between_digits(real_data):
    job = fetch_pendigits_tasks(2, rows_per_class=[35, 25, 20, 12, 8])
    for task in (4, 5, 6):
        target = job.target[job.tasks == task]
        assert [int((target == digit).sum()) for digit in SECOND_GROUP] == [35, 25, 20, 12, 8]
    with pytest.raises(ValueError, match="5000 rows of digit 0, but there are 1143"):
        fetch_pendigits_tasks(1, rows_per_class=5000)


def test_unknown_job_is_an_error():
    with pytest.raises(ValueError, match="job must be 1, 2 or 3; got 4"):
        fetch_pendigits_tasks(4)


def test_downloaded_files_have_the_known_checksums(real_data, no_data, server, monkeypatch):
    url, directory = server
    for name in ("PEN_TRAIN", "PEN_TEST"):
        file = getattr(tasks, name)
        (directory / Path(file.path).name).write_bytes(Path(real_data, file.path).read_bytes())
        monkeypatch.setattr(tasks, name, DataFile(file.path, file.sha256, f"{url}/{Path(file.path).name}"))
    assert fetch_pendigits().data.shape == (10992, 16)
    assert sorted(path.name for path in no_data.rglob("*") if path.is_file()) == ["pendigits.tes", "pendigits.tra"]


def test_changed_rows_are_noticed_by_their_content(tmp_path, monkeypatch):
    (tmp_path / "pendigits").mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    row = ", ".join(["1"] * 17) + "\n"
    for name in ("PEN_TRAIN", "PEN_TEST"):
        file = getattr(tasks, name)
        monkeypatch.setattr(tasks, name, DataFile(file.path, None))
        (tmp_path / file.path).write_text(row * 3)
    with pytest.raises(ValueError, match="not the expected data set"):
        fetch_pendigits()


@pytest.mark.parametrize(("text", "message"), [("1,2,3\n", "3 columns"), ("a,b\n", "not a table of integers")])
def test_file_of_another_kind_is_explained(tmp_path, monkeypatch, text, message):
    (tmp_path / "pendigits").mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    monkeypatch.setattr(tasks, "PEN_TRAIN", DataFile("pendigits/pendigits.tra", None))
    (tmp_path / "pendigits" / "pendigits.tra").write_text(text)
    with pytest.raises(ValueError, match=message):
        fetch_pendigits()


def test_constant_column_is_scaled_to_zero():
    scaled = scale_columns(np.array([[3, 1], [3, 5]]))
    assert scaled.tolist() == [[0.0, 0.0], [0.0, 1.0]]
