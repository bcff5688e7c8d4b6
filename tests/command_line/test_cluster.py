"""The front door in Python: data frames in, labels, tables, predictions and reports out."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars
import pytest
from table_helpers import run_cli, shop_rows, write_table

import mtclust
from mtclust.app.tables.columns import Feature
from mtclust.app.tables.table import read_any
from mtclust.app.words import compared_in_words, value_in_words
from mtclust.exceptions import ModelFileError, TableError, TableWarning
from mtclust.metrics import nmi
from mtclust.persistence.format import decode, encode
from tests.persistence_helpers import rewritten

QUICK = {"kernel": "linear", "sizes": "balanced", "lambda1": 0.05, "lambda2": 0.05, "n_init": 2}


def shops_frame(tasks=("Paris", "Rome"), rows=30, seed=0):
    frame = pd.DataFrame(shop_rows(tasks, rows, seed)).astype({"width": float, "height": float})
    return frame.set_index("customer")


@pytest.fixture(scope="module")
def frame():
    return shops_frame()


@pytest.fixture(scope="module")
def found(frame):
    return mtclust.cluster(frame.drop(columns="truth"), task="shop", n_clusters=3, **QUICK)


def test_labels_stand_on_the_index_of_the_table(frame, found):
    assert found.labels.index.equals(frame.index)
    assert found.labels.name == "cluster"
    assert nmi(frame["truth"], found.labels) == pytest.approx(1.0)
    assert (found.rows("margins").margins > 0).all()
    assert repr(found) == "<Clustering: 60 rows of 2 tasks in 3 clusters>"


def test_the_table_of_clusters(frame, found):
    table = found.clusters
    assert table.index.tolist() == [0, 1, 2]
    assert table["rows"].tolist() == [20, 20, 20]
    np.testing.assert_allclose(table["share in Rome"], 1 / 3)
    assert (table["separation"] > 0.5).all()
    for cluster in range(3):
        assert all(found.labels[name] == cluster for name in table.loc[cluster, "exemplars"])
    (wide,) = set(found.labels[frame["truth"] == 0])
    assert "higher width (" in table.loc[wide, "characterised_by"]


def test_the_table_of_tasks(found):
    table = found.tasks
    assert table.index.tolist() == ["Paris", "Rome"]
    assert table["rows"].tolist() == [30, 30]
    assert table["closest"].tolist() == ["Rome", "Paris"]


def test_unequal_shares_are_compared_in_words():
    rng = np.random.default_rng(0)
    rows = [(task, c) for task, share in (("Oslo", 0.6), ("Rome", 0.2), ("Bonn", 0.2)) for c in rng.random(70) < share]
    frame = pd.DataFrame(rows, columns=["town", "big"])
    frame["size"] = 6.0 * frame.pop("big") + rng.normal(size=210)
    found = mtclust.cluster(frame, "town", 2, **QUICK | {"sizes": 1.0})
    assert found.tasks["particular"].tolist() == ["", "", ""], "sizes that were given say nothing"


def test_tasks_are_compared_as_people_would():
    """A bare number says what it counts."""
    rng = np.random.default_rng(0)
    size = {"1": 3, "2": 60, "3": 195}
    rows = [(task, k < big) for task, big in size.items() for k in range(200)]
    frame = pd.DataFrame(rows, columns=["batch", "big"])
    frame["size"] = 30.0 * frame.pop("big") + rng.normal(size=600)
    found = mtclust.cluster(frame, "batch", 2, kernel="linear", center="all")
    compared = " ".join(compared_in_words(found))
    assert "is less common in batch 1: 2 % of the rows, 64 % elsewhere; ratio 0.024 (" in compared


def test_levels_that_a_cluster_has_are_named_before_those_it_lacks():
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=240)
    frame = pd.DataFrame({"shop": rng.choice(["a", "b"], 240), "segment": np.array(["new", "loyal", "lost"])[kind]})
    frame["contract"] = np.array(["part", "full", "full"])[kind]
    frame["spent"] = 5.0 * kind + rng.normal(size=240)
    found = mtclust.cluster(frame, "shop", 3, kernel="linear")
    for words in found.clusters["characterised_by"]:
        assert "(0 %" not in words
        assert sum(f"segment = {level} (100 %" in words for level in ("new", "loyal", "lost")) == 1
    assert sum("contract = full (100 %" in words for words in found.clusters["characterised_by"]) == 2


def test_a_cluster_in_the_middle_is_described_by_what_tells_the_others_apart(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=300)
    frame = pd.DataFrame({"shop": rng.choice(["a", "b"], 300), "age": 20.0 * kind + 20 + rng.normal(size=300)})
    found = mtclust.cluster(frame, "shop", 3, kernel="linear")
    (middle,) = set(found.labels[kind == 1])
    assert found.clusters.loc[middle, "characterised_by"].startswith("lies between other clusters in age (40")
    assert sum("between other" in words for words in found.clusters["characterised_by"]) == 1
    (trait,) = found.findings.traits[middle]
    shares = np.bincount(found.rows("test").task_numbers[found.labels == middle])
    assert trait.effect == pytest.approx(np.average(trait.effects, weights=shares)), "its own strength, not the others'"
    assert "In between the other clusters" in found.report(tmp_path / "r.html", stability=False).read_text("utf-8")


def test_a_mean_of_zeros_is_zero():
    feature = Feature("bought", "number", 0.4875, 0.4998)
    assert value_in_words(feature, -0.4875 / 0.4998) == "0"


def test_the_table_of_clusters_has_the_stability_once_it_was_asked_for(frame):
    found = mtclust.cluster(frame.drop(columns="truth"), "shop", 3, **QUICK)
    assert "stability" not in found.clusters
    stable = found.stability(n_refits=2)
    assert found.clusters["stability"].tolist() == stable.clusters.tolist()


def test_names_travel_everywhere(frame, found, tmp_path):
    named = found.rename({0: "wide ones", 2: "small ones"})
    assert set(named.labels) == {"wide ones", "1", "small ones"}
    assert named.clusters.index.tolist() == ["wide ones", "1", "small ones"]
    assert "share of wide ones" in named.tasks.columns
    assert set(named.predict(frame)) == set(named.labels)
    assert "wide ones" in str(named.summary())
    assert "wide ones" in named._repr_html_()
    assert "wide ones" in named.report(tmp_path / "report.html").read_text(encoding="utf-8")
    named.save(tmp_path / "named.mtclust")
    loaded = mtclust.load(tmp_path / "named.mtclust")
    assert loaded.predict(frame).tolist() == named.predict(frame).tolist()
    assert loaded.clusters.index.tolist() == named.clusters.index.tolist()
    rows = write_table(tmp_path / "rows.csv", shop_rows())
    assert run_cli("predict", tmp_path / "named.mtclust", rows, "--out", tmp_path / "labels.csv", "--quiet") == 0
    assert set(pd.read_csv(tmp_path / "labels.csv")["cluster"]) == {"wide ones", "1", "small ones"}
    assert found.names == {}, "the clustering itself is not changed"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({3: "x"}, "there is no cluster 3; they are 0 to 2"),
        ({0: "x", 1: "x"}, "clusters would be called 'x', 'x' and '2'; give each one a name of its own"),
        ({0: "1"}, "would be called '1', '1' and '2'"),
        ({0: 1}, "would be called '1', '1' and '2'"),
        ({0: "cluster 2"}, "would be called 'cluster 2', 'cluster 1' and 'cluster 2'"),
        ({0: None}, "would be called '', '1' and '2'"),
        ({1: " "}, "would be called '0', ' ' and '2'"),
    ],
)
def test_names_that_cannot_be_given(found, names, words):
    with pytest.raises(TableError, match=words):
        found.rename(names)


def test_clusters_may_exchange_their_numbers(found):
    assert set(found.rename({0: "1", 1: 0}).labels) == {"0", "1", "2"}


def test_predict_ignores_order_and_further_columns(frame, found):
    shuffled = frame.sample(frac=1, random_state=0)[["height", "truth", "shop", "colour", "width"]]
    predicted = found.predict(shuffled)
    assert predicted.index.equals(shuffled.index)
    assert (predicted == found.labels.reindex(predicted.index)).all()


def test_a_new_task_is_refused_or_clustered(found):
    oslo = shops_frame(["Oslo"], seed=1)
    with pytest.raises(TableError, match=r"the model has no task 'Oslo'; it knows 'Paris', 'Rome'\. .*new_tasks=True"):
        found.predict(oslo)
    with pytest.warns(TableWarning, match="New task Oslo: 30 rows"):
        predicted = found.predict(oslo, new_tasks=True)
    assert nmi(oslo["truth"], predicted) == pytest.approx(1.0)


def test_new_levels_are_told(frame, found):
    with pytest.warns(TableWarning, match=r"Column colour has values that were not in the fitted table \(pink\)"):
        found.predict(frame.assign(colour="pink"))


def test_an_unknown_value_of_two_is_neither(frame):
    two = frame.drop(columns="truth").assign(colour=frame["colour"].replace("blue", "red"))
    found = mtclust.cluster(two, task="shop", n_clusters=3, **QUICK)
    encoded = {}
    for colour in ("red", "green", "pink", None):
        given = read_any(two.assign(colour=colour), "shop")
        X, notes = found.encoder.transform(given)
        encoded[colour] = X[:, -1].mean()
        assert ("(pink); they are treated as missing." in " ".join(notes)) == (colour == "pink")
    assert encoded["pink"] == encoded[None]
    assert min(encoded["red"], encoded["green"]) < encoded["pink"] < max(encoded["red"], encoded["green"])
    with_gaps = two.assign(colour=two["colour"].where(np.arange(60) % 10 > 0))
    found = mtclust.cluster(with_gaps, task="shop", n_clusters=3, **QUICK)
    X = [found.encoder.transform(read_any(two.assign(colour=colour), "shop"))[0] for colour in ("pink", None)]
    np.testing.assert_array_equal(*X)


def saved_and_loaded(found, path):
    found.save(path)
    return mtclust.load(path)


def noise(n=140, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"shop": rng.choice(["a", "b", "c"], n), "x": rng.normal(size=n), "y": rng.normal(size=n)})


def with_far_values():
    frame = shops_frame(rows=60).drop(columns="truth")
    return frame.assign(width=frame["width"].where(np.arange(120) % 40 > 0, -999.0))


def with_other_shares():
    rng = np.random.default_rng(0)
    big = np.concatenate([rng.random(200) < share for share in (0.1, 0.5, 0.9)])
    frame = pd.DataFrame({"shop": np.repeat(["a", "b", "c"], 200), "x": 9.0 * big + rng.normal(size=600)})
    return frame.assign(y=frame["x"] + rng.normal(size=600))


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        (noise, {}, "No clear clusters"),
        (with_far_values, {}, "Odd values"),
        (with_other_shares, {"n_clusters": 2, "center": "all"}, "common in "),
        (noise, {"n_clusters": "auto"}, "No clear clusters"),
    ],
    ids=["noise", "far", "shares", "open"],
)
def test_a_loaded_clustering_says_what_the_saved_one_did(table, options, said, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mtclust.cluster(table(), task="shop", **{"n_clusters": 3} | options)
    loaded = saved_and_loaded(found, tmp_path / "m")
    assert said in found.summary()
    assert loaded.summary() == found.summary()
    pd.testing.assert_frame_equal(loaded.clusters, found.clusters)
    pd.testing.assert_frame_equal(loaded.tasks, found.tasks)
    again = saved_and_loaded(loaded, tmp_path / "again")
    assert again.summary() == found.summary()
    named = {0: "first"}
    assert loaded.rename(named).summary() == found.rename(named).summary()
    pd.testing.assert_frame_equal(loaded.rename(named).clusters, found.rename(named).clusters)


def test_stability_and_columns_that_decide_are_kept(tmp_path):
    found = mtclust.cluster(noise(), task="shop", n_clusters=3)
    found.stability(n_refits=2)
    loaded = saved_and_loaded(found, tmp_path / "m")
    assert found.without == loaded.without != {}
    assert loaded.summary() == found.summary()


@pytest.mark.parametrize(
    "index",
    [
        range(60),
        [f"row {k}" for k in range(60)],
        pd.date_range("2024-01-01", periods=60),
        pd.date_range("2024-01-01", periods=60, tz="Europe/Oslo"),
        pd.MultiIndex.from_product([["a", "b"], pd.date_range("2024-01-01", periods=30)]),
        np.arange(60) / 7,
    ],
    ids=["numbers", "names", "days", "zone", "pairs", "parts"],
)
def test_loaded_tables_are_those_that_were_saved(index, frame, tmp_path):
    found = mtclust.cluster(frame.drop(columns="truth").set_axis(pd.Index(index)), "shop", 3, **QUICK)
    loaded = saved_and_loaded(found, tmp_path / "m")
    pd.testing.assert_frame_equal(loaded.clusters, found.clusters)
    pd.testing.assert_frame_equal(loaded.tasks, found.tasks)
    assert loaded.clusters.loc[0, "exemplars"] == found.clusters.loc[0, "exemplars"]


def test_entries_of_an_index_of_any_other_kind_are_kept_by_their_strings(frame, tmp_path):
    found = mtclust.cluster(
        frame.drop(columns="truth").set_axis(pd.period_range("2024", periods=60)), "shop", 3, **QUICK
    )
    loaded = saved_and_loaded(found, tmp_path / "m")
    kept = [[str(entry) for entry in own] for own in found.clusters["exemplars"]]
    assert loaded.clusters["exemplars"].tolist() == kept


def of_clustering(saved, change):
    """A file in which what :meth:`save` keeps of the table (``table``, ``clustering``) was changed; checksums hold."""

    def changed(manifest):
        extra = decode(manifest["extra"], {})
        change(extra)
        manifest["extra"] = encode(extra, "extra", {})

    return rewritten(saved, changed)


def test_clusterings_of_earlier_versions_are_read(found, tmp_path):
    """They held the tables, with indices of strings, and nothing of ids, the test of structure and warnings."""
    table = json.loads(found.clusters.rename(index=str).to_json(orient="split", default_handler=str))
    kept = {"names": {"0": "wide"}, "notes": ["one"], "tables": {"clusters": table | {"name": "cluster"}, "tasks": {}}}
    found.save(tmp_path / "m")
    (tmp_path / "m").write_bytes(
        of_clustering((tmp_path / "m").read_bytes(), lambda extra: extra.update(clustering=kept))
    )
    loaded = mtclust.load(tmp_path / "m")
    assert loaded.names == {0: "wide"}
    assert loaded.notes == ["one"]
    assert loaded.clusters["characterised_by"].tolist() == found.clusters["characterised_by"].tolist()
    assert loaded.tasks["rows"].tolist() == found.tasks["rows"].tolist()
    assert "higher width" in loaded.summary()
    assert "may not mean the same" not in loaded.summary()


def forgeries():
    """Ways to spoil every part of what is kept of a clustering, and every field of the columns."""
    for value in (None, 0, "x", [1], {"x": 1}):
        for part in ("names", "notes", "warned", "without", "structure", "differing", "tables"):
            yield f"{part} {value!r}", lambda extra, part=part, value=value: extra["clustering"].update({part: value})
        for part in ("missing", "task_column", "columns", "notes"):
            yield f"table {part} {value!r}", lambda extra, part=part, value=value: extra["table"].update({part: value})
        for k in range(3):
            yield f"column {k} {value!r}", lambda e, k=k, value=value: e["table"]["columns"].__setitem__(k, value)
            for name in ("kind", "name", "centre", "scale", "fill", "fills", "form", "levels"):

                def field(extra, k=k, name=name, value=value):
                    if name in extra["table"]["columns"][k]:
                        extra["table"]["columns"][k][name] = value

                yield f"{name} of column {k} {value!r}", field
        for part in ("columns", "data"):
            yield (
                f"tables {part} {value!r}",
                lambda extra, part=part, value=value: extra["clustering"]["tables"]["clusters"].update({part: value}),
            )
    yield "no clustering", lambda extra: extra["clustering"].clear()
    yield "no table", lambda extra: extra.pop("table")


def test_a_forged_clustering_is_refused_or_shows_itself_and_predicts(frame, found, tmp_path):
    found.save(tmp_path / "m")
    saved, refused = (tmp_path / "m").read_bytes(), 0
    for name, change in forgeries():
        (tmp_path / "m").write_bytes(of_clustering(saved, change))
        try:
            loaded = mtclust.load(tmp_path / "m")
        except ModelFileError as error:
            refused += "m' is damaged and was not loaded: " in str(error)
            continue
        try:
            assert len(loaded.clusters) == 3, name
            assert len(loaded.tasks) == 2
            assert "60 rows" in loaded.summary()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert len(loaded.predict(frame)) == 60
        except ValueError:  # another name of a column, a scale of 0
            continue
        except Exception as error:
            raise AssertionError(name) from error
    assert refused > 100


def test_saved_models_of_both_kinds_predict_frames(frame, found, tmp_path):
    found.save(tmp_path / "model.mtclust")
    path = write_table(tmp_path / "shops.csv", shop_rows())
    command = ["fit", path, "--task-column", "shop", "--key", "customer,truth", "--clusters", 3, "--kernel", "linear"]
    assert run_cli(*command, "--sizes", "balanced", "--out", tmp_path / "out", "--quiet") == 0
    for file in (tmp_path / "model.mtclust", tmp_path / "out" / "model.mtclust"):
        loaded = mtclust.load(file)
        assert isinstance(loaded, mtclust.Clustering)
        assert nmi(frame["truth"], loaded.predict(frame)) == pytest.approx(1.0)
        assert nmi(frame["truth"], loaded.predict(path)) == pytest.approx(1.0)
        assert loaded.clusters["rows"].tolist() == [20, 20, 20]
        assert loaded.tasks.index.tolist() == ["Paris", "Rome"]
        assert loaded.labels.tolist() == loaded.model.labels_.tolist()
        assert "higher" in str(loaded.summary())
        with pytest.raises(TableError, match="report needs the table, which is not saved with a model"):
            loaded.report(tmp_path / "report.html")
    assert mtclust.load(tmp_path / "model.mtclust", return_extra=True)[0].n_clusters == 3


def test_an_estimator_is_loaded_as_such(found, tmp_path):
    found.model.save(tmp_path / "model.mtclust")
    assert isinstance(mtclust.load(tmp_path / "model.mtclust"), mtclust.DMTRC)
    (tmp_path / "no.mtclust").write_text("no")
    with pytest.raises(ModelFileError, match="not a model"):
        mtclust.load(tmp_path / "no.mtclust")


def test_polars_frames_give_polars_tables(frame, found):
    given = polars.from_pandas(frame.reset_index())
    got = mtclust.cluster(given.drop("truth"), task="shop", n_clusters=3, **QUICK)
    assert isinstance(got.labels, polars.Series)
    assert got.labels.to_list() == found.labels.tolist()
    assert isinstance(got.clusters, polars.DataFrame)
    assert got.clusters["rows"].to_list() == [20, 20, 20]
    assert got.tasks["task"].to_list() == ["Paris", "Rome"]
    assert isinstance(got.predict(given), polars.Series)
    assert isinstance(got.predict(given.lazy()), polars.Series)
    assert isinstance(got.predict(frame), pd.Series)
    assert isinstance(got.least_sure(2), polars.DataFrame)


def test_polars_kinds_of_columns():
    rng = np.random.default_rng(0)
    given = polars.DataFrame(
        {
            "shop": ["a", "b"] * 30,
            "count": [None if k % 7 == 0 else int(k) for k in rng.integers(9, size=60)],
            "price": rng.normal(size=60),
            "member": [bool(k % 3) for k in range(60)],
            "day": polars.Series([f"2024-0{1 + k % 9}-11" for k in range(60)]).str.to_date(),
        }
    )
    got = mtclust.cluster(given, "shop", 2, **QUICK)
    assert [column.kind for column in got.encoder.columns] == ["number", "number", "category", "date"]


def test_two_tables_of_one_task_are_refused(frame):
    parts = {1: frame.drop(columns="shop"), "1": frame.drop(columns="shop")}
    with pytest.raises(TableError, match=r"keys of the mapping are the same task \('1'\); rename them"):
        mtclust.cluster(parts, n_clusters=3)


def test_a_mapping_of_frames(frame, found):
    parts = {name: part.drop(columns=["shop", "truth"]) for name, part in frame.groupby("shop")}
    got = mtclust.cluster(parts, n_clusters=3, **QUICK)
    assert got.labels.index.names == ["task", "row"]
    assert got.labels["Rome"].index.tolist() == parts["Rome"].index.tolist()
    assert got.labels.tolist() == found.labels.tolist()
    assert got.predict(parts).tolist() == got.labels.tolist()
    fewer = parts | {"Rome": parts["Rome"].drop(columns="colour")}
    common = mtclust.cluster(fewer, n_clusters=3, **QUICK)
    assert "Columns that only some of the tables have were left out: 'colour'." in common.notes


def test_tasks_given_row_by_row_are_matched_by_their_index(frame, found):
    tasks = frame["shop"].sample(frac=1, random_state=0)
    got = mtclust.cluster(frame.drop(columns=["shop", "truth"]), task=tasks, n_clusters=3, **QUICK)
    assert got.labels.tolist() == found.labels.tolist()
    plain = mtclust.cluster(frame.drop(columns=["shop", "truth"]), task=frame["shop"].tolist(), n_clusters=3, **QUICK)
    assert plain.labels.tolist() == found.labels.tolist()


def test_files_and_kinds_of_cells(tmp_path, frame):
    path = write_table(tmp_path / "shops.csv", shop_rows())
    got = mtclust.cluster(path, "shop", 3, keys=["customer", "truth"], **QUICK)
    assert nmi(frame["truth"], got.labels) == pytest.approx(1.0)
    assert got.labels.index.tolist() == list(range(60))
    parts = [write_table(tmp_path / f"{name}.csv", shop_rows([name])) for name in ("Oslo", "Rome")]
    got = mtclust.cluster([str(part) for part in parts], n_clusters=3, columns=["width", "height"], **QUICK)
    assert got.tasks.index.tolist() == ["Oslo", "Rome"]
    with pytest.raises(TableError, match="task must name a column where the table is a file"):
        mtclust.cluster(path, task=[1] * 60, n_clusters=3)
    with pytest.raises(TableError, match="task is needed with a single file"):
        mtclust.cluster(path, n_clusters=3)


@pytest.mark.parametrize(
    ("table", "task", "words"),
    [
        (lambda f: f.to_numpy(), None, "table is of type ndarray; give a pandas or polars data frame"),
        (lambda f: f, None, "task is needed: the column that says which task a row belongs to. The columns are 'shop'"),
        (lambda f: f, "store", "task: there is no column 'store'"),
        (lambda f: f[:0], "shop", "the table has no rows"),
        (lambda f: {}, None, "the mapping of tables is empty"),
        (lambda f: {"a": f}, [1], "task is for a single table"),
        (lambda f: f, [1, 2], "task has 2 entries but the table has 60 rows"),
        (lambda f: f, [None] * 60, "task is missing in 60 rows"),
        (lambda f: f, pd.Series([1] * 60), "task is a series with another index than the table"),
        (lambda f: pd.concat([f, f[["width"]]], axis=1), "shop", "more than one column named 'width'"),
        (lambda f: {"a": f[["width"]], "b": f[["height"]]}, None, "the tables have no column in common"),
    ],
)
def test_tables_that_cannot_be_used(frame, table, task, words):
    with pytest.raises(TableError, match=words.replace("(", r"\(")):
        mtclust.cluster(table(frame), task, 3, **QUICK)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "kmeans"}, TableError, "method='kmeans' is not known; it is one of 'dmtrc', 'dmtfc', 'dstc'"),
        ({"scale": "log"}, TableError, "scale='log' is not known"),
        ({"shape": 3}, TableError, "DMTRC has no parameter shape; leave it out"),
        ({"n_clusters": range(70, 80)}, TableError, "no larger than the number of rows, 60"),
        ({"sizes": 7.0}, TableError, "sizes"),
        ({"kernel": "precomputed"}, TableError, "kernel='precomputed' is not known; it is one of 'auto', 'rbf', 'lin"),
        ({"kernel": ["rbf"]}, TableError, r"kernel=\['rbf'\] is not known"),
        ({"decimal": "comma"}, TableError, "decimal='comma' is not known; it is one of '.', ','"),
        ({"decimal": ";"}, TableError, "decimal=';' is not known"),
        ({"decimal": ""}, TableError, "decimal='' is not known"),
    ],
)
def test_options_that_are_not_understood(frame, options, error, words):
    with pytest.raises(error, match=words):
        mtclust.cluster(frame, "shop", **{"n_clusters": 3} | QUICK | options)


def test_a_kernel_of_ones_own_is_used(frame, found):
    own = mtclust.cluster(frame.drop(columns="truth"), "shop", 3, **QUICK | {"kernel": lambda a, b: a @ b.T})
    assert nmi(own.predict(frame), found.labels) == pytest.approx(1.0)


def test_the_least_sure_rows_come_with_their_values(frame, found):
    rows = found.least_sure(4)
    columns = ["task", "cluster", "next", "margin", "probability", "stability", "outlier", "width", "height", "colour"]
    assert set(columns) - {"stability"} <= set(rows) <= set(columns)  # others may have asked for the stability
    assert rows["margin"].tolist() == sorted(found.rows("margins").margins)[:4]
    assert (rows["width"] == frame.loc[rows.index, "width"]).all()
    assert (rows["cluster"] != rows["next"]).all()


def test_summary_and_notebook_escape_names(frame):
    evil = frame.assign(shop=frame["shop"].map({"Paris": "<script>alert(1)</script>", "Rome": "b"}))
    got = mtclust.cluster(evil.drop(columns="truth"), "shop", 3, **QUICK)
    assert "<script>" not in got._repr_html_()
    assert "<script>" not in got.summary()._repr_html_()
    assert "60 rows in 2 tasks (shop)" in str(got.summary())


def test_the_input_is_not_changed_and_the_result_can_be_pickled(frame):
    before = frame.copy(deep=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = mtclust.cluster(frame.drop(columns="truth"), "shop", 3, **QUICK)
    pd.testing.assert_frame_equal(frame, before)
    again = pickle.loads(pickle.dumps(got))
    assert again.labels.tolist() == got.labels.tolist()
    assert json.dumps(got.encoder.to_dict())


def test_the_package_shows_its_own_names_only():
    assert not {"Any", "TYPE_CHECKING"} & set(dir(mtclust))
    assert {"cluster", "Clustering", "load", "DMTRC"} <= set(dir(mtclust))
    with pytest.raises(AttributeError, match="module 'mtclust' has no attribute 'clusters'"):
        _ = mtclust.clusters


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_any_index_and_a_single_cluster_can_be_saved(tmp_path, n_clusters):
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=20)
    parts = {name: pd.DataFrame({"x": rng.normal(size=20) + 9 * (np.arange(20) % 2)}, index=days) for name in "ab"}
    found = mtclust.cluster(parts, n_clusters=n_clusters, **QUICK)
    found.save(tmp_path / "model.mtclust")
    assert "rows" in str(mtclust.load(tmp_path / "model.mtclust").summary())
    page = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert ("are one cluster" in page) == (n_clusters == 1)


def test_marks_that_turn_the_order_of_reading_are_spelled_out(frame, tmp_path):
    evil = frame.assign(shop=frame["shop"].map({"Paris": "gnp.\u202egod", "Rome": "b"}))
    found = mtclust.cluster(evil.drop(columns="truth"), "shop", 3, **QUICK)
    page = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "\u202e" not in page + str(found.summary())
