"""Every sentence about clusters is true: averages are of rows, ids that differ are said to, words have rules."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import mtclust
from mtclust.app.findings import ClusterMoments, id_agreement
from mtclust.app.report.page import render_report, report_content
from mtclust.app.words import figure, percent, two, value_in_words
from mtclust.estimators.stability import refitted

NUMBER = re.compile(r"(?:higher|lower) (\w+) \(([^;]+); others ([^)]+)\)")
SHARE = re.compile(r"(\w+) = (\w+) \(([^;]+); others ([^)]+)\)")


def unequal_shops(seed=0):
    """Two kinds of rows, rare in one of three shops; some values are missing, and the shops are shifted."""
    rng = np.random.default_rng(seed)
    shop = np.repeat(["a", "b", "c"], [200, 60, 60])
    kind = rng.random(320) < np.where(shop == "a", 0.8, 0.1)
    frame = pd.DataFrame({"shop": shop, "spent": 100 + 80 * kind + 30 * (shop == "a") + rng.normal(size=320)})
    frame["visits"] = np.round(5 + 20 * kind + rng.normal(size=320), 1)
    frame["contract"] = np.where(kind ^ (rng.random(320) < 0.1), "full", "part")
    frame.loc[rng.choice(320, 40, replace=False), "visits"] = np.nan
    return frame


def test_every_printed_number_is_an_average_of_rows():
    frame = unequal_shops()
    found = mtclust.cluster(frame, "shop", 2, kernel="linear")
    checked = 0
    for cluster, words in found.clusters["characterised_by"].items():
        inside, outside = frame[found.labels == cluster], frame[found.labels != cluster]
        for column, here, others in NUMBER.findall(words):
            assert (here, others) == (figure(inside[column].mean()), figure(outside[column].mean()))
            checked += 1
        for column, level, here, others in SHARE.findall(words):
            assert here == percent((inside[column] == level).mean())
            assert others == percent((outside[column] == level).mean())
            checked += 1
    assert checked >= 4
    content = report_content(found)
    assert content["in_words"] == found.clusters["characterised_by"].tolist()
    for cluster, traits in enumerate(content["traits"]):
        inside = frame[found.labels == cluster]
        for trait in traits:
            name = trait.feature.name
            if name in frame:
                rows = inside if trait.task is None else inside[inside["shop"] == content["tasks"][trait.task]]
                assert value_in_words(trait.feature, trait.inside) == figure(rows[name].mean())


def test_every_share_row_count_and_figure_is_that_of_the_labels():
    frame = unequal_shops()
    found = mtclust.cluster(frame, "shop", 2, kernel="linear")
    found.stability(n_refits=2)
    labels, shop, content = found.labels, frame["shop"], report_content(found)
    table = pd.crosstab(shop, labels)
    assert found.clusters["rows"].tolist() == table.sum().tolist()
    page, shares = render_report(found), table.div(table.sum(axis=1), axis=0)
    told = re.findall(r'</strong> <span class="quiet">([^<]*)</span>', page)
    assert told == [percent(n / len(frame)) for n in table.sum()]
    told = re.findall(r'<td class="number" data-c="\d">(\d+) <span class="quiet">([^<]*)</span>', page)
    assert told == [(str(n), percent(n / own.sum())) for _, own in table.iterrows() for n in own]
    assert content["sizes"] == table.to_numpy().tolist()
    assert content["all_sizes"] == table.sum().tolist()
    assert np.allclose(found.tasks[[f"share of {c}" for c in range(2)]], shares.loc[found.tasks.index])
    assert np.allclose(found.clusters[[f"share in {name}" for name in "abc"]], shares.T)


def test_differences_between_tasks_are_those_of_the_rows():
    frame = unequal_shops()
    found = mtclust.cluster(frame, "shop", 2, kernel="linear")
    said = report_content(found)["compared"]
    pattern = r"Cluster (\d) is (?:more|less) common in (\w): (.+?) of the rows, (.+? %) elsewhere"
    told = [match.groups() for match in (re.match(pattern, sentence) for sentence in said) if match]
    assert told
    for cluster, shop, here, elsewhere in told:
        own, mine = frame["shop"] == shop, found.labels == int(cluster)
        assert (here, elsewhere) == (percent(mine[own].mean()), percent(mine[~own].mean()))


def test_strengths_in_the_report_are_differences_in_standard_deviations():
    frame = unequal_shops()
    found = mtclust.cluster(frame, "shop", 2, kernel="linear")
    content, checked = report_content(found), 0
    page = render_report(found)
    for cluster, traits in enumerate(content["traits"]):
        for trait in traits:
            for task in content["shown"] if trait.feature.name == "spent" else ():
                name = content["tasks"][task]
                own = frame["shop"] == name
                values, inside = frame["spent"][own], (found.labels == cluster)[own]
                effect = (values[inside].mean() - values[~inside].mean()) / values.std(ddof=0)
                assert trait.effects[task] == pytest.approx(effect)
                assert f'data-t="{task}" data-tip="{name}: {two(trait.effects[task], "+")}"' in page
                checked += 1
    assert checked >= 3


def test_a_column_that_decides_is_named_before_separation_is_spoken_of():
    rng = np.random.default_rng(0)
    kind, other = rng.integers(2, size=240), rng.integers(2, size=240)
    frame = pd.DataFrame({"shop": rng.choice(["a", "b"], 240), "weight": 9.0 * kind + rng.normal(size=240)})
    frame["height"] = 4.0 * other + rng.normal(size=240)
    frame["depth"] = 4.0 * other + rng.normal(size=240)
    found = mtclust.cluster(frame, "shop", 2, kernel="linear")
    assert "Leaving out" not in str(found.summary()), "nobody has asked"
    found.stability(n_refits=2)
    text = " ".join(str(found.summary()).split())
    decides = [column for column, agreement in found.without.items() if agreement < 0.8]
    assert decides
    assert text.index("Leaving out") < text.index("a separation of")
    assert all(column in text for column in decides)
    assert report_content(found)["verdict"].startswith("Leaving out one column changes the clusters")


def test_a_refit_to_all_rows_and_columns_finds_the_same_clusters():
    found = mtclust.cluster(unequal_shops(), "shop", 2)
    rows = found.rows("test")
    anew = refitted(found.model, rows.X, found.model.tasks_[rows.task_numbers]).labels_
    assert adjusted_rand_score(anew, found.model.labels_) == 1.0


def test_cars_weigh_as_many_as_they_are(data_home):
    frame = pd.read_csv(f"{data_home}/tables/cars.csv")
    found = mtclust.cluster(frame, "Origin", 2, kernel="linear")
    assert not found.warned, "no column that counts for nothing was made of the dates"
    for cluster, words in found.clusters["characterised_by"].items():
        means = frame[found.labels == cluster].mean(numeric_only=True)
        told = NUMBER.findall(words)
        assert told
        for column, here, _ in told:  # 7.875 cylinders may be rounded either way
            assert here in {figure(means[column] * (1 + rounding)) for rounding in (-1e-12, 1e-12)}


# -- same id, same thing ----------------------------------------------------------------------------------------------


def blobs(m, rows, separation, seed, d=6, C=3):
    """Clusters whose centres vary a little from task to task, in tasks that are shifted and have other shares."""
    rng = np.random.default_rng(seed)
    unit = separation / np.sqrt(2 * d)
    centres = unit * rng.normal(size=(C, d))
    tasks, labels = np.repeat(np.arange(m), rows), np.zeros(m * rows, dtype=np.int64)
    X = rng.normal(size=(m * rows, d))
    for task in range(m):
        own = tasks == task
        labels[own] = rng.choice(C, rows, p=rng.dirichlet(np.full(C, 3.0)))
        X[own] += (centres + 0.3 * unit * rng.normal(size=(C, d)))[labels[own]] + rng.normal(size=d)
    return X, tasks, labels


def test_ids_that_are_right_are_hardly_ever_doubted_and_exchanged_ones_nearly_always():
    doubted, known, noticed, exchanged = 0, 0, 0, 0
    for seed in range(6):
        for rows, separation in ((20, 3.0), (50, 3.0), (50, 5.0), (200, 2.0)):
            X, tasks, labels = blobs(6, rows, separation, seed)
            agreement, _, differs = id_agreement(X, tasks, ClusterMoments(X, tasks, labels, 6, 3), common=False)
            doubted, known = doubted + differs.sum(), known + np.isfinite(agreement).sum()
            labels[tasks == 2] = (labels[tasks == 2] + 1) % 3
            agreement, _, differs = id_agreement(X, tasks, ClusterMoments(X, tasks, labels, 6, 3), common=False)
            noticed, exchanged = noticed + differs[2].sum(), exchanged + np.isfinite(agreement[2]).sum()
    assert doubted <= 0.02 * known
    assert noticed >= 0.9 * exchanged


@pytest.fixture(scope="module")
def exchanged():
    """Three clear kinds in four shops, with the ids of two clusters exchanged in one of them."""
    rng = np.random.default_rng(0)
    kind = np.concatenate(
        [rng.choice(3, 80, p=p) for p in ([0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4], [0.2, 0.2, 0.6])]
    )
    frame = pd.DataFrame(8.0 * np.eye(3)[kind] + rng.normal(size=(320, 3)), columns=["age", "spent", "visits"])
    frame["shop"] = np.repeat(["Bonn", "Oslo", "Rome", "Turin"], 80)
    found = mtclust.cluster(frame, "shop", 3, kernel="linear")
    model = found.model
    wrong = model.labels_.copy()
    rome = np.flatnonzero(frame["shop"] == "Rome")
    wrong[rome] = np.array([1, 0, 2])[wrong[rome]]
    right, model.labels_ = model.labels_, wrong
    model.cluster_sizes_ = np.array([np.bincount(wrong[frame["shop"] == name], minlength=3) for name in model.tasks_])
    return mtclust.Clustering(model, found.encoder, _rows=found._rows), frame, right


def test_ids_that_differ_are_said_of_a_saved_clustering_too(exchanged, tmp_path):
    found, _, _ = exchanged
    found.save(tmp_path / "m")
    for names in ({}, {0: "young"}):
        saved, loaded = (each.rename(names).summary() for each in (found, mtclust.load(tmp_path / "m")))
        assert loaded == saved
        assert f"{names.get(0, 'cluster 0')} in Rome (agreement −" in loaded


def test_ids_that_differ_are_said_first_shown_by_task_and_not_compared(exchanged):
    found, _, _ = exchanged
    text = str(found.summary())
    first = text.split("\n\n")[1].replace("\n", " ")
    assert first.startswith("Cluster ids may not mean the same in all tasks: cluster 0 in Rome (agreement −")
    assert "cluster 1 in Rome" in first
    flat = " ".join(text.split())
    assert not re.search(r"[Cc]luster [01] is (more|less) common", flat)
    assert re.search(r"[Cc]luster 2 is (more|less) common", flat), (
        "shares of a cluster that means the same are compared"
    )
    assert found.clusters["characterised_by"].str.startswith("differs between tasks: in ").tolist() == [
        True,
        True,
        False,
    ]
    content = report_content(found)
    assert content["first"] == first
    assert content["headline"].endswith("were divided into 3 clusters, not all of which look the same in every task.")
    assert list(map(bool, content["differs"])) == [True, True, False]
    assert {trait.scope for traits in content["traits"][:2] for trait in traits} == {"task"}
    assert not any(word in " ".join(found.tasks["particular"]) for word in ("cluster 0 is", "cluster 1 is"))


def test_ids_that_are_the_same_are_compared_and_nothing_is_said():
    rng = np.random.default_rng(0)
    kind = np.concatenate([rng.choice(3, 80, p=p) for p in ([0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4])])
    frame = pd.DataFrame(8.0 * np.eye(3)[kind] + rng.normal(size=(240, 3)), columns=["age", "spent", "visits"])
    found = mtclust.cluster(frame.assign(shop=np.repeat(["Bonn", "Oslo", "Rome"], 80)), "shop", 3, kernel="linear")
    assert not found.findings.differs.any()
    text = str(found.summary())
    assert "may not mean" not in text
    assert "more common in" in " ".join(text.split())
    assert (found.clusters["characterised_by"].str.len() > 10).all()


# -- words follow evidence --------------------------------------------------------------------------------------------


def test_where_there_are_no_clusters_no_differences_are_told():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("xyz"))
    frame["shop"] = np.where(frame["x"] + rng.normal(size=300) > 0, "a", "b")
    found = mtclust.cluster(frame, "shop", 3, kernel="linear")
    assert found.facts.doubted
    text = " ".join(str(found.summary()).split())
    assert "no structure beyond single columns and their correlations" in text
    assert "common in" not in text
    assert "closest task" not in text
    content = report_content(found)
    assert not content["compared"]
    assert content["relationship"] is None
    assert not found.tasks["particular"].str.contains("common").any()


def test_higher_and_lower_are_those_of_the_averages_that_follow():
    """In each of two firms the cluster has the higher value, over all rows the lower one."""
    rng = np.random.default_rng(0)
    firm, kind = np.repeat(["small", "large"], 100), np.repeat([0, 1, 0, 1], [80, 20, 20, 80])
    frame = pd.DataFrame({"firm": firm, "capital": 9.0 * kind + rng.normal(size=200)})
    frame["value"] = np.where(firm == "small", 500.0, 0.0) + 3.0 * kind + rng.normal(size=200)
    found = mtclust.cluster(frame, "firm", 2, kernel="linear", center="task")
    assert adjusted_rand_score(found.labels, kind) > 0.8
    means = frame.groupby(found.labels.to_numpy())["value"].mean()
    higher = found.labels[kind == 1].mode()[0]
    assert means[higher] < means[1 - higher], "although it is higher in each firm"
    for cluster, words in found.clusters["characterised_by"].items():
        assert "value" not in words
        assert ("higher" if cluster == higher else "lower") + " capital" in words


def test_a_cluster_of_one_task_is_not_said_to_be_absent_in_every_other():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 0, 1, 0, 2], 30)
    frame = pd.DataFrame(9.0 * np.eye(3)[kind] + rng.normal(size=(180, 3)), columns=["a", "b", "c"])
    found = mtclust.cluster(frame.assign(shop=np.repeat(["x", "y", "z"], 60)), "shop", 3, kernel="linear")
    own = int(found.labels[kind == 2].iloc[0])
    about = [sentence for sentence in report_content(found)["compared"] if f"luster {own} " in sentence]
    assert about == [f"Cluster {own} is found only in z (50 % of the rows there)."]


def test_one_column_that_is_left_is_named_and_words_alone_are_no_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": rng.choice(["a", "b"], 200), "weight": 9.0 * rng.integers(2, size=200)})
    frame["weight"] += rng.normal(size=200)
    assert mtclust.cluster(frame, "shop", 2).headline.endswith(
        "were divided into 2 clusters by the column weight alone."
    )
    frame["height"] = frame["weight"] + rng.normal(size=200)
    assert "alone" not in mtclust.cluster(frame, "shop", 2).headline
    words = np.array([["late courier parcel", "parcel tracking late"], ["soup salt oven", "oven bread soup"]])
    frame["note"] = [f"{words[row % 2, row // 2 % 2]} {row}" for row in range(200)]
    assert "alone" not in mtclust.cluster(frame[["shop", "note"]], "shop", 2, text_column="note").headline


def test_of_two_clusters_a_difference_is_told_once():
    found = mtclust.cluster(unequal_shops(), "shop", 2, kernel="linear")
    compared = report_content(found)["compared"]
    told = [re.search(r" in (\w)\b", sentence)[1] for sentence in compared]
    assert told
    assert len(told) == len(set(told))


def test_every_cluster_has_a_description(data_home):
    frame = pd.read_csv(f"{data_home}/tables/chile.csv").head(600)
    found = mtclust.cluster(frame, "region", 3, kernel="linear")
    for words in found.clusters["characterised_by"]:
        assert "(" in words, words
