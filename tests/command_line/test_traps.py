"""Tables that once led to clusters of nothing: identifiers, codes, coin flips, one task per row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from table_helpers import run_cli, write_table

import mtclust
from mtclust.app.report.page import report_content
from mtclust.app.tables.encoding import TableEncoder
from mtclust.app.tables.table import table_of_frames
from mtclust.app.words import value_in_words
from mtclust.exceptions import TableError


def encode(frame, task="shop", **options):
    table = table_of_frames(frame, task)
    encoder = TableEncoder.fit(table, **options)
    return encoder, encoder.transform(table)[0]


def used(frame, task="shop", **options):
    """Names of the columns that are clustered by, and all notes."""
    encoder, _ = encode(frame, task, **options)
    return [column.name for column in encoder.columns], " ".join(encoder.notes)


@pytest.fixture
def shops():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"shop": np.repeat(["a", "b", "c"], 40), "size": rng.normal(size=120).round(3)})


#: columns that name rows or tasks, or say nothing: what they hold, and why they are left out
LEFT_OUT = {
    "account": (lambda rng: rng.choice(10**6, 120, replace=False), "a different number in nearly every row"),
    "serving": (lambda rng: rng.choice(10**6, 120, replace=False), "a different whole number in every row"),
    "phone": (lambda rng: rng.choice(10**9, 120, replace=False), "named as an identifier"),
    "postcode": (lambda rng: rng.choice([8001, 8002, 8005], 120), "named as an identifier"),
    "customerID": (lambda rng: rng.integers(50, size=120), "named as an identifier"),
    "patient id": (lambda rng: [f"P{k:02d}" for k in rng.integers(40, size=120)], "named as an identifier"),
    "n": (lambda rng: np.arange(120), "counts the rows"),
    "from 1001": (lambda rng: 1001 + rng.permutation(120), "counts the rows"),
    "visit": (lambda rng: np.tile(np.arange(1, 41), 3), "counts the rows of each task"),
    "shuffled": (lambda rng: np.concatenate([rng.permutation(40) for _ in range(3)]), "counts the rows of each task"),
    "sample": (lambda rng: rng.permutation(np.r_[1:31, 1:51, 1:41]), "counts rows, starting again several times"),
    "code": (lambda rng: [f"X{k}" for k in rng.permutation(120)], "different in nearly every row"),
    "name": (
        lambda rng: [f"Anna {k}" for k in rng.permutation(120)],
        "different in nearly every row",
    ),
    "place": (lambda rng: np.repeat(["north", "south", "south"], 40), "the same in all rows of a task"),
    "height": (lambda rng: np.repeat([2, 31, 31], 40), "the same in all rows of a task"),
    "opened": (lambda rng: np.repeat(["2020-01-01", "2021-01-01", "2022-05-01"], 40), "the same in all rows of a task"),
    "day": (lambda rng: ["2024-03-01"] * 120, "the same in every row"),
    "unit": (lambda rng: ["kg"] * 100 + [None] * 20, "the same in every row where it is known"),
    "rare": (lambda rng: [None] * 70 + ["x"] * 49 + ["y"], "missing in 70 of 120 rows"),
    "nothing": (lambda rng: [None] * 120, "empty in every row"),
}

#: columns that look a little like these, and measure something
KEPT = {
    "income": lambda rng: np.rint(rng.lognormal(10, 0.5, 120)),
    "number_of_visits": lambda rng: np.rint(rng.lognormal(10, 0.5, 120)),
    "bmi_index": lambda rng: np.rint(rng.lognormal(10, 0.5, 120)),
    "year": lambda rng: rng.integers(1990, 2020, 120),
    "guests": lambda rng: rng.poisson(9, 120),
    "mobile": lambda rng: np.tile([0, 1], 60),
    "phone": lambda rng: np.tile(["android", "iphone", "none"], 40),
    "place": lambda rng: np.r_[np.repeat(["north", "south", "south"], 39), ["south", "north", "north"]],
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_only_names_rows_or_tasks_is_left_out_and_named(shops, name):
    values, reason = LEFT_OUT[name]
    shops[name] = values(np.random.default_rng(1))
    columns, notes = used(shops)
    assert columns == ["size"]
    assert f"{name} ({reason}" in notes
    if "in every row" not in reason and not reason.startswith("different in"):
        assert used(shops, columns=["size", name])[0] == ["size", name], "asked for is asked for"


@pytest.mark.parametrize("name", KEPT)
def test_what_measures_rows_is_kept(shops, name):
    shops[name] = KEPT[name](np.random.default_rng(1))
    shops["size"] += pd.factorize(shops[name])[0] % 2  # so that few values are associated with something
    assert used(shops)[0] == ["size", name]


def test_counts_of_things_are_no_sequence_numbers():
    rng = np.random.default_rng(0)
    for draw in range(40):
        counts = [rng.integers(1, 60, 400), rng.geometric(0.05, 400), rng.poisson(9, 400), rng.binomial(40, 0.5, 400)]
        frame = pd.DataFrame({"shop": np.repeat(["a", "b"], 200), "size": rng.normal(size=400)})
        frame = frame.assign(**{f"x{k}": values for k, values in enumerate(counts)})
        assert "beginning anew" not in used(frame)[1], draw


def test_numbers_of_the_samples_of_a_study_do_not_hide_the_species(data_home):
    frame = pd.read_csv(f"{data_home}/tables/penguins_raw.csv")
    found = mtclust.cluster(frame.sample(frac=1.0, random_state=0), "Island")
    assert "Sample Number (counts rows, starting again several times)" in " ".join(found.notes)
    assert adjusted_rand_score(frame["Species"], found.labels.sort_index()) > 0.9


def test_a_word_among_a_few_whole_numbers_makes_them_a_category():
    frame = pd.DataFrame({"shop": "a", "cylinders": ["4", "6", "8"] * 6 + ["rotary"], "power": np.arange(19.0) ** 2})
    encoder, _ = encode(frame)
    assert encoder.columns[0].levels == ["4", "6", "8", "rotary"]
    assert "Read as categories, since not all cells are numbers: cylinders ('rotary' in row 19)" in " ".join(
        encoder.notes
    )
    frame["power"] = [*map(str, range(18)), "strong"]
    with pytest.raises(TableError, match="but 1 cell is something else"):
        encode(frame)


@pytest.mark.parametrize(
    ("cells", "value", "told"),
    [
        (["68%", "7%", "12.5%"], 68, "('68%' is 68)"),
        (["€2,134", "€15", "€1,000"], 2134, "('€2,134' is 2,134)"),
        (["1.2k", "850", "3M"], 1200, "('1.2k' is 1,200)"),
        (["$1,000.50", "$2", "$3"], 1000.5, "('$1,000.50' is 1,000.5)"),
        (["12 kg", "7 kg", "3,5 kg"], 12, "('12 kg' is 12)"),
        (["1 234,5", "7", "3,5"], 1234.5, ""),
        (["1.234.567", "7", "12"], 1234567, ""),
        (["−5", "7", "12"], -5, ""),
    ],
)
def test_numbers_as_people_write_them(cells, value, told):
    frame = pd.DataFrame({"shop": "a", "x": cells * 5})
    encoder, X = encode(frame)
    feature = encoder.features[0]
    assert feature.kind == "number"
    assert feature.offset + feature.factor * X[0, 0] == pytest.approx(value)
    assert told in " ".join(encoder.notes)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["€5", "$7", "€9"], r"column 'x' mixes numbers in \$ and €; convert them to one unit"),
        (["5%", "7", "9%"], "column 'x' mixes numbers in % and no unit"),
        (
            ["5%", "7%", "9%", "unknown"],
            r"holds numbers, but \d cells are something else \(first: 'unknown' in row 4\)",
        ),
        (
            ["1,234", "5,678", "9,000"],
            r"'1,234', whose comma may part thousands or decimals. Say decimal=',' if",
        ),
    ],
)
def test_numbers_that_cannot_be_read_are_never_made_a_category(cells, words):
    with pytest.raises(TableError, match=words):
        encode(pd.DataFrame({"shop": "a", "x": cells * 3}))


@pytest.mark.parametrize(
    "cells", [["18-25", "26-40", "41+"], ["10A", "10B", "12C"], ["1st", "2nd", "3rd"], ["S", "M", "L"]]
)
def test_names_that_hold_digits_stay_categories(cells):
    encoder, _ = encode(pd.DataFrame({"shop": "a", "x": cells * 4}))
    assert {column.kind for column in encoder.columns} == {"category"}


def test_one_task_per_row_is_refused(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [
        {"customer": f"C{i:04d}", "shop": "abc"[i % 3], "spent": f"{rng.normal():.3f}", "age": f"{rng.normal():.3f}"}
        for i in range(1000)
    ]
    path = write_table(tmp_path / "customers.csv", rows)
    assert run_cli("fit", path, "--task-column", "customer", "--out", tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert "tasks has 1000 different ids for 1000 rows" in error
    assert "they name rows, not tasks" in error


@pytest.mark.parametrize(("tasks", "rows"), [(2, 2), (4, 3), (30, 12), (60, 5)])
def test_small_tasks_are_allowed(tasks, rows):
    frame = pd.DataFrame(
        {"shop": np.repeat(np.arange(tasks), rows), "x": np.random.default_rng(0).normal(size=tasks * rows)}
    )
    assert used(frame)[0] == ["x"]


@pytest.mark.parametrize("weighed", [False, True])
def test_a_coin_flip_does_not_decide_the_clusters(weighed):
    """Three clusters by numbers, two columns of coin flips beside them; and nothing but noise beside coin flips.

    They are left out by default, and where they are asked for they weigh little.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=300)
    coins = {"news": rng.choice(["yes", "no"], 300), "sex": rng.choice(["f", "m"], 300)}
    tasks = np.repeat(["a", "b", "c"], 100)
    clear = pd.DataFrame({"shop": tasks, **coins, "x": 3.0 * (truth == 0), "y": 3.0 * (truth == 1)})
    clear[["x", "y"]] += rng.normal(size=(300, 2))
    _, X = encode(clear, columns=["news", "sex", "x", "y"] if weighed else None)
    assert X.shape[1] == (4 if weighed else 2)
    found = KMeans(3, n_init=10, random_state=0).fit_predict(X)
    assert adjusted_rand_score(truth, found) > 0.75
    nothing = pd.DataFrame({"shop": tasks, **coins, **{name: rng.normal(size=300) for name in "xyz"}})
    _, X = encode(nothing, columns=["news", "sex", *"xyz"] if weighed else None)
    found = KMeans(4, n_init=10, random_state=0).fit_predict(X)
    assert normalized_mutual_info_score(nothing.news + nothing.sex, found) < 0.1


def test_categories_that_say_something_still_do():
    """Categories that agree with each other outweigh one that agrees with none."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    told = {f"told {k}": np.where(rng.random(300) < 0.9, truth, 1 - truth).astype(str) for k in range(4)}
    frame = pd.DataFrame({"shop": "a", **told, "coin": rng.choice(["x", "y"], 300)})
    encoder, X = encode(frame)
    assert [column.name for column in encoder.columns] == list(told)
    assert "coin (not associated with any other column" in " ".join(encoder.notes)
    assert adjusted_rand_score(truth, KMeans(2, n_init=10, random_state=0).fit_predict(X)) > 0.8


def coin_frame(rows=300, seed=0, **columns):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"shop": np.repeat(["a", "b", "c"], rows // 3), "x": rng.normal(size=rows)})
    return frame.assign(coin=rng.choice(["u", "v"], rows), **columns)


def test_a_category_counts_where_a_column_goes_with_it_in_any_way():
    """By its mean, by its spread, in every task in another direction, or by being missing."""
    coin = coin_frame()
    assert used(coin)[0] == ["x"]
    up = (coin["coin"] == "u").to_numpy()
    side = np.where(coin["shop"] == "a", 1, -1)
    for x in (coin["x"] + up, coin["x"] * (1 + 2 * up), coin["x"] + 1.5 * side * up):
        assert used(coin.assign(x=x))[0] == ["x", "coin"]
    absent = coin.assign(coin=np.where(coin["x"] > 0.5, None, coin["coin"]))
    assert used(absent)[0] == ["x", "coin"]
    assert used(coin, columns=["x", "coin"])[0] == ["x", "coin"], "asked for is asked for"
    assert used(coin[["shop", "coin"]].assign(other=coin["coin"].sample(300, random_state=1).to_numpy()))[0] == [
        "coin", "other",
    ], "something must be left"  # fmt: skip


def test_too_few_rows_to_know_leave_categories_in():
    assert used(coin_frame(60))[0] == ["x", "coin"]


def test_numbers_with_few_values_weigh_as_categories():
    """Three years cut a table as neatly as a category does, whether or not they say anything."""
    rng = np.random.default_rng(0)
    frame = coin_frame(year=rng.integers(2007, 2010, 300)).drop(columns="coin")
    assert used(frame)[0] == ["x"]
    _, X = encode(frame, columns=["x", "year"])
    np.testing.assert_allclose(X.std(axis=0), [1, 1 / 3])
    _, X = encode(frame, columns=["x", "year"], scale="none")
    assert set(X[:, 1]) == {2007, 2008, 2009}


def test_three_columns_are_not_drowned_by_a_hundred_that_say_nothing():
    rng = np.random.default_rng(0)
    truth, tasks = rng.integers(3, size=300), np.repeat(["a", "b", "c"], 100)
    told = pd.DataFrame(4.0 * np.eye(3)[truth] + rng.normal(size=(300, 3)), columns=list("xyz"))
    two_peaks = 5.0 * rng.integers(2, size=300) + rng.normal(size=300)
    noise = pd.DataFrame(rng.normal(size=(300, 100)), columns=[f"n{k}" for k in range(100)])
    frame = pd.concat([told, noise], axis=1).assign(shop=tasks, peaks=two_peaks)
    columns, notes = used(frame)
    assert {"x", "y", "z", "peaks"} <= set(columns)
    assert len(columns) < 10
    assert "n0, n1" in notes
    assert " more (not associated with any other column" in notes
    few = used(frame[["shop", "n0", "n1", "n2"]])[0]
    assert few == ["n0", "n1", "n2"], "of a few numbers none is left out"
    found = mtclust.cluster(frame, "shop", 3)
    assert adjusted_rand_score(truth, found.labels) > 0.9


#: shares of three clusters in three shops; k-means on all rows finds all of them
SHARES = {
    "equal": [(1 / 3, 1 / 3, 1 / 3)] * 3,
    "80, 15 and 5 % everywhere": [(0.8, 0.15, 0.05)] * 3,
    "another large one everywhere": [(0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)],
    "one absent in a shop": [(0.4, 0.3, 0.3), (0.4, 0.3, 0.3), (0.5, 0.5, 0)],
    "a shop of one cluster": [(0.4, 0.3, 0.3), (0.4, 0.3, 0.3), (1, 0, 0)],
}


@pytest.mark.parametrize("shares", SHARES)
def test_unequal_and_absent_clusters_are_found_with_the_same_ids_everywhere(shares):
    rng = np.random.default_rng(0)
    truth = np.concatenate(
        [np.repeat(range(3), np.rint(150 * np.array(share)).astype(int)) for share in SHARES[shares]]
    )
    frame = pd.DataFrame(8.0 * np.eye(3)[truth][:, :2] + rng.normal(size=(len(truth), 2)), columns=["x", "y"])
    frame["shop"] = np.repeat(list("abc"), 150)[: len(truth)]
    found = mtclust.cluster(frame, "shop", 3)
    assert adjusted_rand_score(truth, found.labels) > 0.99
    assert found.facts.structure == "clusters"


def test_words_that_all_texts_of_a_task_share_are_no_topic():
    """Reviews of phones are about phones; what they praise or blame is what makes kinds of reviews."""
    rng = np.random.default_rng(0)
    about = {"phone": "phone screen battery", "kettle": "kettle water boil", "shoes": "shoes sole size"}
    kinds = ("late courier parcel waited", "cheap price refund value", "broke material scratched plastic")
    kind, product = rng.integers(3, size=240), rng.choice(list(about), 240)
    texts = [
        " ".join([*rng.choice(about[p].split(), 3), *rng.choice(kinds[k].split(), 4)]) for p, k in zip(product, kind)
    ]
    frame = pd.DataFrame({"product": product, "review": texts, "stars": kind + rng.normal(scale=0.5, size=240)})
    found = mtclust.cluster(frame, "product", 3)
    assert adjusted_rand_score(kind, found.labels) > 0.9
    names = " ".join(feature.name for feature in found.encoder.features[:3])
    assert "courier" in names
    assert "kettle" not in names
    assert all(words.count("review rather about") <= 1 for words in found.clusters["characterised_by"])


def test_years_are_shown_without_thousands(shops):
    shops["year"] = np.random.default_rng(1).integers(1990, 2020, 120)
    encoder, _ = encode(shops)
    assert value_in_words(encoder.features[1], 0.0) == "2005"


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_nothing_are_called_so(seed):
    """Independent columns, two of them coin flips: whatever is found there only divides the rows, and is said to."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.normal(size=300) for name in "xyz"})
    frame = frame.assign(
        shop=rng.choice(list("abc"), 300), news=rng.choice(["y", "n"], 300), sex=rng.choice(["f", "m"], 300)
    )
    found = mtclust.cluster(frame, "shop", 4, kernel="linear", sizes="balanced", lambda1=0.05, lambda2=0.05, n_init=2)
    found.stability(4)
    assert found.facts.standing == "none"
    said = " ".join(str(found.summary()).split())
    assert "A test finds no structure beyond single columns" in said
    assert "common in" not in said, "no differences between tasks where there are no clusters"
    headline = report_content(found)["headline"]
    assert headline.endswith("were divided into 4 clusters, which a test does not confirm.")


@pytest.mark.parametrize(
    ("apart", "said"), [(3.0, "were divided into 3 clusters that overlap"), (6.0, "fall into 3 clusters")]
)
def test_clusters_of_something_are_not_doubted(apart, said):
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=300)
    frame = pd.DataFrame(apart * np.eye(3)[truth] + rng.normal(size=(300, 3)), columns=list("xyz"))
    frame = frame.assign(shop=rng.choice(list("abc"), 300), news=rng.choice(["y", "n"], 300))
    found = mtclust.cluster(frame, "shop", 3, kernel="linear", sizes=0.5, lambda1=0.05, lambda2=0.05, n_init=2)
    assert found.facts.standing == "divided", "nobody has asked how stable they are"
    found.stability()
    assert report_content(found)["headline"] == f"300 rows in 3 tasks (shop) {said}."
