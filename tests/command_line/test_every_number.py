"""Every number that is printed is computed again from the table and ``labels.csv``, and none is left over."""

import contextlib
import io
import re

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist, pdist
from scipy.stats import binomtest, norm
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

import mtclust
from mtclust.app import cli
from mtclust.app.report.page import render_report, report_content
from mtclust.app.words import figure, kernel_in_words, percent
from mtclust.choose import judge
from mtclust.core.validation import generator_of
from mtclust.estimators import stability
from mtclust.selection import select_n_clusters

NUMBERS = ("spent", "visits", "age")


def shops():
    """Three kinds of customers in three shops, some values missing, two rows far from all others."""
    rng = np.random.default_rng(0)
    shop = np.repeat(["Oslo", "Rome", "Turin"], [150, 90, 60])
    shares = {"Oslo": [0.6, 0.3, 0.1], "Rome": [0.2, 0.4, 0.4], "Turin": [0.3, 0.1, 0.6]}
    kind = np.array([rng.choice(3, p=shares[name]) for name in shop])
    frame = pd.DataFrame(
        12.0 * np.eye(3)[kind] + rng.normal(size=(300, 3)) + [100.0, 20.0, 40.0], columns=list(NUMBERS)
    )
    frame.loc[[5, 200], "spent"] += 60.0
    frame["contract"] = np.array(["full", "part", "none"])[np.where(rng.random(300) < 0.9, kind, (kind + 1) % 3)]
    frame = frame.round(2)
    frame.loc[rng.choice(300, 20, replace=False), "age"] = np.nan
    frame.insert(0, "shop", shop)
    return frame


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The table, the labels as the command has written them, what it has printed, and the same in Python."""
    out, frame = tmp_path_factory.mktemp("numbers"), shops()
    frame.to_csv(out / "shops.csv", index=False)
    with contextlib.redirect_stdout(io.StringIO()) as stream, contextlib.redirect_stderr(io.StringIO()):
        assert cli.main(["fit", str(out / "shops.csv"), "--task-column", "shop", "--out", str(out / "result")]) == 0
    found = mtclust.cluster(out / "shops.csv", "shop")
    found.stability()
    labels = pd.read_csv(out / "result" / "labels.csv")
    text = " ".join(stream.getvalue().split()).replace(str(out), "")
    return frame, labels, text, found


def wilson(count, rows, z):
    """The interval by SciPy."""
    interval = binomtest(int(count), int(rows)).proportion_ci(2 * norm.cdf(z) - 1, method="wilson")
    return interval.low, interval.high


def two_digits(value):
    return figure(float(f"{value:.2g}"))


def sentences(frame, labels, found, refits):
    """All that the command should print with a number in it, from the table and the labels."""
    cluster, shop = labels["cluster"], frame["shop"]
    table = pd.crosstab(shop, cluster)
    n, (m, C) = len(frame), table.shape
    yield f"{n} rows in {m} tasks (shop)"
    yield f"into {C} clusters"
    yield f"by {len(NUMBERS)} numbers and 1 category"
    yield f"({kernel_in_words(found.model.selection_.kernel)})"
    yield "task rows " + " ".join(map(str, table.columns))
    for name, row in table.iterrows():
        yield f"{name} {row.sum()} {' '.join(map(str, row))}"
    for c in table.columns:
        inside, outside = frame[cluster == c], frame[cluster != c]
        yield f"cluster {c} {percent(len(inside) / n)}"
        for column in NUMBERS:
            a, b = inside[column].mean(), outside[column].mean()
            yield f"{'higher' if a > b else 'lower'} {column} ({figure(a)}; others {figure(b)})"
        for level in ("full", "part", "none"):
            a, b = ((part["contract"] == level).mean() for part in (inside, outside))
            yield f"contract = {level} ({percent(a)}; others {percent(b)})"
    z = norm.isf(0.05 / (2 * m * C))
    for name, row in table.iterrows():
        rest = table.drop(index=name).sum()
        for c in table.columns:
            (a, n_a), (b, n_b) = (row[c], row.sum()), (rest[c], rest.sum())
            p, q = (a + 0.5) / (n_a + 0.5), (b + 0.5) / (n_b + 0.5)
            (p_low, p_high), (q_low, q_high) = wilson(a, n_a, z), wilson(b, n_b, z)
            low = p / q * np.exp(-np.hypot(np.log(p / p_low), np.log(q_high / q)))
            high = p / q * np.exp(np.hypot(np.log(p_high / p), np.log(q / q_low)))
            ratio, low, high = (two_digits(value) for value in ((a / n_a) / (b / n_b), low, high))
            yield (
                f"Cluster {c} is {'more' if a / n_a > b / n_b else 'less'} common in {name}: {percent(a / n_a)} of the "
                f"rows, {percent(b / n_b)} elsewhere; ratio {ratio} ({low} to {high})."
            )
    yield f"a separation of {found.model.loo_score_:.2f} (0: as in noise, 1: they do not touch)"
    share = min(0.5, stability.MOST_ROWS / n)
    agreement = f"is {refits[0]:.2f} (1: the same, 0: chance)"
    yield f"The agreement with clusters found in 10 samples of {100 * share:.0f} % of the rows {agreement}"
    for c in np.flatnonzero(refits[1] < 0.7):
        yield f"cluster {c} ({refits[1][c]:.2f})"
    yield "below 0.7 a cluster is not reliable"
    without = [(value, column) for column, value in found.without.items() if round(value, 2) < 0.8]
    for place, (value, column) in enumerate(sorted(without)):
        yield f"{column} ({'agreement ' * (place == 0)}{value:.2f}{'; 1: the same clusters, 0: chance' * (place == 0)})"
    yield f"age ({frame['age'].isna().sum()} rows)"
    far = int((labels["outlier"] > 0.75).sum())
    yield f"{far} row{'s lie' if far > 1 else ' lies'} far from all others of the same task"
    yield "(outlier score above 0.75)"
    rows = found.rows("numbers")
    choice = select_n_clusters(found.model, rows.X, tasks=found.model.tasks_[rows.task_numbers])
    yield f"{choice.reason[0].upper()}{choice.reason[1:]}."


@pytest.fixture(scope="module")
def refits(printed):
    """Mean adjusted Rand index within tasks of refits on the same subsamples, and of every cluster the mean Jaccard."""
    model, rows = printed[3].model, printed[3].rows("numbers")
    order = np.argsort(rows.task_numbers, kind="stable")
    X, tasks, labels = rows.X[order], rows.task_numbers[order], np.asarray(model.labels_)[order]
    offsets, rng = np.searchsorted(tasks, np.arange(len(model.tasks_) + 1)), generator_of(0)
    agreement, clusters = [], []
    for _ in range(10):
        _, where = stability.subsample(offsets, 0.5, model.n_clusters_, rng)
        anew = stability.refitted(model, X[where], model.tasks_[tasks[where]]).labels_
        own = pd.DataFrame({"task": tasks[where], "fit": labels[where], "anew": anew})
        agreement.append(np.mean([adjusted_rand_score(part["fit"], part["anew"]) for _, part in own.groupby("task")]))
        fit, again = (pd.get_dummies(own[column]).to_numpy() for column in ("fit", "anew"))
        clusters.append([max((a & b).sum() / (a | b).sum() for b in again.T) for a in fit.T])
    return float(np.mean(agreement)), np.mean(clusters, axis=0)


def test_no_number_is_printed_that_cannot_be_computed_again(printed, refits):
    frame, labels, text, found = printed
    left = text
    said = 0
    for sentence in sentences(frame, labels, found, refits):
        said += sentence in left
        left = left.replace(sentence, "")
    assert said > 20
    left = re.sub(r"[Cc]lusters? \d( in task)?", "", left)  # names of clusters
    assert not re.findall(r"\S* ?\S*\d\S*", left), left


def test_python_prints_what_the_command_prints(printed):
    _, labels, text, found = printed
    assert found.labels.tolist() == labels["cluster"].tolist()
    summary = " ".join(str(found.summary()).split())
    assert re.sub(r"[\d.]+", "#", text).startswith(re.sub(r"[\d.]+", "#", summary)[:400])
    for number in re.findall(r"\d[\d.]*\d", summary):
        assert number in text


def test_outlier_scores_are_those_of_the_five_nearest_rows_of_the_task(printed):
    frame, labels, _, found = printed
    X = found.rows("numbers").X
    roots = np.empty(len(X))
    for name in frame["shop"].unique():
        own = np.flatnonzero(frame["shop"] == name)
        distances = NearestNeighbors(n_neighbors=6).fit(X[own]).kneighbors(X[own])[0][:, 1:].mean(axis=1)
        roots[own] = np.sqrt(distances / np.median(distances))
    deviations = np.maximum(roots - np.median(roots), 0) / (1.4826 * np.median(np.abs(roots - np.median(roots))))
    assert labels["outlier"].to_numpy() == pytest.approx(deviations / (deviations + 3.5), abs=6e-5)
    assert (labels["outlier"] > 0.75)[[5, 200]].all()


def test_other_figures_of_the_report(printed, refits):
    frame, labels, _, found = printed
    content, model = report_content(found), found.model
    table = pd.crosstab(frame["shop"], labels["cluster"])
    shares = table.div(table.sum(axis=1), axis=0).to_numpy()
    page = render_report(found)
    assert re.findall(r"</dt><dd>([^<]*)</dd>", page)[:2] == [f"{model.loo_score_:.2f}", f"{refits[0]:.2f}"]
    if model.selection_["center"] != "task":
        alike = [[1 - np.abs(a - b).sum() / 2 for a in shares] for b in shares]
        np.testing.assert_allclose(content["relationship"]["values"], alike)
        assert re.findall(r'--hue: var\(--plus\)">([^<]*)<', page) == [f"{v:.2f}" for row in alike for v in row]
    scores = model.decision_function(found.rows("numbers").X, tasks=frame["shop"].to_numpy())
    own = scores[np.arange(300), labels["cluster"]]
    scores[np.arange(300), labels["cluster"]] = -np.inf
    margins, following = own - scores.max(axis=1), scores.argmax(axis=1)
    assert labels["margin"].to_numpy() == pytest.approx(margins, abs=6e-5)
    least = np.argsort(margins, kind="stable")[:12]
    assert [row["margin"] for row in content["least_sure"]["rows"]] == pytest.approx(margins[least])
    for row in least:
        assert f'<td class="number">{margins[row]:z.2f}</td>'.replace(">-", ">−") in page
    assert [row["next"] for row in content["least_sure"]["rows"]] == following[least].tolist()
    assert [sum(content["sizes"][view["task"]]) for view in content["points"]] == table.sum(axis=1).tolist()
    for c in table.columns:
        numbers = f"{table[c].sum()} rows · separation {model.cluster_scores_[c]:.2f} · stability {refits[1][c]:.2f}"
        assert numbers in page


# -- separation and correlations, where every task keeps its own frame -------------------------------------------------


@pytest.fixture(scope="module")
def own_frames():
    """Two kinds of customers in three shops that are shifted against each other, clustered around the shops' means."""
    rng = np.random.default_rng(1)
    kind, shop = np.tile([0, 0, 1], 24), np.repeat(["Bonn", "Oslo", "Rome"], 24)
    X = 3.0 * np.outer(kind, [1.0, -1.0, 0.5]) + rng.normal(size=(72, 3)) + np.repeat([[0], [9], [-7]], 24, axis=0)
    found = mtclust.cluster(pd.DataFrame(X, columns=list(NUMBERS)).assign(shop=shop), "shop", 2, center="task")
    found.stability()
    return found


def separation(X, tasks, labels, C):
    """s of every cluster: R² of ridge regressions fitted again without each row, beyond what noise reaches."""
    by_kernel, parts = [], [X[tasks == i] for i in np.unique(tasks)]
    mean_distance = np.concatenate([pdist(part) for part in parts]).mean()
    for width in (None, *judge._WIDTHS):
        kernels = [cdist(part, part) if width else part @ part.T for part in parts]
        kernels = [np.exp(-0.5 * (D / width / mean_distance) ** 2) for D in kernels] if width else kernels
        scale = np.concatenate([np.diag(K - K.mean(0) - K.mean(1)[:, None] + K.mean()) for K in kernels]).mean()
        errors, total, noise = np.zeros((len(judge._LAMBDAS), C)), np.zeros(C), np.zeros(C)
        for i, K in enumerate(kernels):
            s, U = np.linalg.eigh(K / scale)
            features, z, n = U * np.sqrt(np.maximum(s, 0)), np.eye(C)[labels[tasks == i]], len(K)
            for k, ridge in enumerate(judge._LAMBDAS):
                for j in range(n):
                    model = Ridge(n * ridge / 2).fit(np.delete(features, j, 0), np.delete(z, j, 0))
                    errors[k] += (z[j] - model.predict(features[[j]])[0]) ** 2 * ((n - 1) / n) ** 2
            total += n * z.mean(0) * (1 - z.mean(0))
            noise += n * z.mean(0) * (1 - z.mean(0)) * judge._NOISE[np.count_nonzero(z.any(0)) - 1]
        r_squared = (1 - errors / total)[(1 - errors / total).sum(1).argmax()]
        by_kernel.append((r_squared - noise / total) / (1 - noise / total))
    return np.mean(by_kernel, axis=0)


def test_separation_is_that_of_models_fitted_without_each_row(own_frames):
    found, rows = own_frames, own_frames.rows("numbers")
    scores = separation(rows.X, rows.task_numbers, np.asarray(found.model.labels_), 2)
    page = render_report(found)
    assert f"0 as in noise</dt><dd>{scores.mean():.2f}</dd>" in page
    for c, score in enumerate(scores):
        assert f"{np.sum(found.model.labels_ == c)} rows · separation {score:.2f} ·" in page
    assert found.clusters["separation"].tolist() == pytest.approx(scores.tolist(), abs=1e-4)
    assert f"a separation of {scores.mean():.2f}" in " ".join(str(found.summary()).split())


def test_correlations_are_those_of_omega(own_frames):
    Omega = own_frames.model.task_covariance_
    own = Omega / np.sqrt(np.outer(np.diag(Omega), np.diag(Omega)))
    page = render_report(own_frames)
    assert "<summary>Correlation between tasks</summary>" in page
    told = re.findall(r'<td class="number" style="--heat[^>]*>([^<]*)</td>', page)
    assert told == [f"{value:.2f}".replace("-", "−") for value in own.ravel()]
