"""Values that may mean "not known" or be errors: told, never changed, and declared missing where the user says so."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from table_helpers import run_cli, write_table

import mtclust
from mtclust.app.tables.encoding import far_values
from mtclust.exceptions import TableError, TableWarning


@pytest.fixture
def plants():
    """Three kinds in two plants, and their truth."""
    rng = np.random.default_rng(0)
    kind = np.arange(120) % 3
    values = np.array([[20.0, 5.0], [30.0, 9.0], [20.0, 13.0]])[kind] + rng.normal(size=(120, 2))
    frame = pd.DataFrame(values.round(2), columns=["warm", "wet"]).assign(plant=np.repeat(["a", "b"], 60))
    return frame, kind


def clustered(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        return mtclust.cluster(frame, "plant", 3, kernel="linear", **options)


def test_numbers_for_not_known_are_told_with_the_way_out(plants):
    frame, kind = plants
    clustered(frame)
    frame.loc[::9, "warm"] = -999
    with pytest.warns(TableWarning, match="warm.*-999 in 14 rows, the others 1") as caught:
        found = mtclust.cluster(frame, "plant", 3, kernel="linear")
    assert "missing=['-999']" in str(caught[0].message)
    assert "Odd values: Some values lie so far from all others" in " ".join(str(found.summary()).split())
    assert adjusted_rand_score(kind, found.labels) < 0.9


@pytest.mark.parametrize("missing", [-999, [-999], "-999", ["-999.0", "?"]])
@pytest.mark.parametrize("dtype", [float, "Int64", "object"])
def test_numbers_of_a_frame_can_be_declared_missing(plants, missing, dtype):
    frame, kind = plants
    frame["warm"] = (10 * frame["warm"]).round()
    frame.loc[::10, "warm"] = np.nan
    empty = clustered(frame)
    frame["warm"] = frame["warm"].fillna(-999).astype("Int64").astype(dtype)
    found = clustered(frame, missing=missing)
    assert "Missing values were filled in: warm (12 rows)." in found.notes
    np.testing.assert_array_equal(found.labels, empty.labels)
    assert adjusted_rand_score(kind, found.labels) > 0.7
    with pytest.warns(TableWarning, match=r"filled in: warm \(12 rows\)"):
        assert (found.predict(frame) == found.labels).mean() > 0.95


def test_dates_of_a_frame_can_be_declared_missing(plants):
    frame, _ = plants
    frame["last"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["wet"].round(), unit="D")
    frame.loc[::9, "last"] = pd.Timestamp("1900-01-01")
    found = clustered(frame, missing="1900-01-01")
    assert "last (14 rows)" in " ".join(found.notes)


def test_the_command_line_says_it_too(plants, tmp_path, capsys):
    frame, _ = plants
    frame.loc[::9, "warm"] = -999
    path = write_table(tmp_path / "plants.csv", frame.to_dict("records"))
    arguments = ["fit", path, "--task-column", "plant", "--clusters", "3", "--kernel", "linear", "--no-stability"]
    run_cli(*arguments, "--out", tmp_path / "first")
    said = " ".join(capsys.readouterr().out.split())
    assert "Odd values: Some values lie so far from all others" in said
    assert "--missing -999)" in said
    assert "Some values lie so far" in (tmp_path / "first" / "report.html").read_text(encoding="utf-8")
    run_cli(*arguments, "--missing", "-999", "--out", tmp_path / "second")
    assert "so far from all others" not in " ".join(capsys.readouterr().out.split())


def test_far_is_beyond_a_gap_on_either_side_and_never_the_tail_of_a_skewed_column():
    rng = np.random.default_rng(0)
    body = rng.normal(50, 10, size=200)
    assert far_values(np.r_[body, 998, 999, 999, 999, -1e6, np.nan]).tolist() == [-1e6, 998, 999]
    assert far_values(np.r_[body[:60], [-99] * 40]).tolist() == [-99]  # also where two of five rows have it
    assert far_values(np.r_[body, 300]).tolist() == []  # once: an outlier, said elsewhere
    assert far_values(np.r_[body, [300] * 3]).tolist() == [300]
    assert far_values(np.r_[np.zeros(150), body]).tolist() == []  # most rows are equal: nothing to measure gaps by
    assert far_values(np.r_[body, body[:9] + 900]).tolist() == []  # a kind of rows
    assert far_values(np.r_[body[:15], 1e9]).tolist() == []  # too few rows
    assert far_values(np.array([1.0, 2.0, 3.0, 900.0] * 20)).tolist() == []  # a rating
    assert np.mean([len(far_values(np.exp(rng.normal(scale=1.5, size=200)))) > 0 for _ in range(100)]) < 0.05


@pytest.mark.parametrize("argument", ["columns", "keys", "categories"])
def test_one_name_need_not_be_a_list(plants, argument):
    frame, _ = plants
    found = clustered(frame.assign(wet=frame["wet"].round()), **{argument: "wet"})
    listed = clustered(frame.assign(wet=frame["wet"].round()), **{argument: ["wet"]})
    assert found.labels.equals(listed.labels)
    with pytest.raises(TableError, match=rf"{argument}: there is no column 'name'"):
        clustered(frame, **{argument: "name"})


def test_what_is_no_name_is_refused(plants):
    with pytest.raises(TableError, match="keys is None; give a name or a list of names"):
        clustered(plants[0], keys=None)
