"""Sentences of the documentation that a reader may act on, each with a check that it is true."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.labels import balance_bounds
from tests.conftest import gaussian_tasks

DOCS = Path(__file__).resolve().parents[1] / "docs"
X, Y, TASKS = gaussian_tasks(rows=20, spread=1.5)


def nothing_depends_on_random_state(tmp_path):
    rng = np.random.default_rng(0)
    many = rng.normal(size=(330, 3)) + 2 * rng.integers(2, size=(330, 1))  # more tasks than settings are chosen on
    for rows, tasks, method in ((X, TASKS, DMTRC), (many, np.arange(330) % 110, DMTFC)):
        first, second = (method(2, random_state=seed).fit(rows, tasks=tasks).labels_ for seed in (0, 1))
        np.testing.assert_array_equal(first, second)


def known_rows_keep_their_clusters(tmp_path):
    known = np.full(len(X), -1)
    known[[0, 25]] = [2, 1]
    assert DMTRC(3).fit(X, tasks=TASKS, known=known).labels_[[0, 25]].tolist() == [2, 1]


def estimators_refuse_missing_values_and_cluster_fills_them_in(tmp_path):
    table = pd.DataFrame(X, columns=list("abcd")).assign(shop=TASKS.astype(str), colour=np.where(Y == 0, "red", "blue"))
    table.loc[3, "a"] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        DSTC(3).fit(table[list("abcd")], tasks=TASKS)
    found = mtclust.cluster(table, task="shop", n_clusters=3)
    assert len(found.labels) == len(table)
    assert any("filled in" in note for note in found.notes)
    assert any(feature.column == "colour" for feature in found.encoder.features)


def bounds_that_allow_nothing_are_widened(tmp_path):
    low, high = balance_bounds(39, 5, 0.1)
    assert low <= 39 // 5 < -(-39 // 5) <= high


def linear_models_at_scale_hold_no_rows(tmp_path):
    rows = np.random.default_rng(0).normal(size=(2000, 12))
    sizes = {}
    for kernel in ("linear", "rbf"):
        model = DSTC(2, kernel=kernel, width=1.0, lambda1=0.1, sizes="balanced", n_init=1, random_state=0)
        model.fit(rows).save(tmp_path / kernel)
        sizes[kernel] = (tmp_path / kernel).stat().st_size
    assert sizes["linear"] < rows.nbytes / 2
    held = DSTC(2, kernel="rbf", n_init=1, random_state=0).fit(rows[:100])
    held.save(tmp_path / "small")
    assert mtclust.load(tmp_path / "small")._model.rows.shape == (100, 12)


def one_lambda_where_tasks_are_many(tmp_path):
    rows, tasks = np.random.default_rng(0).normal(size=(600, 30)), np.arange(600) % 60
    model = DMTRC(
        2, kernel="linear", lambda1={i: 0.1 + 0.01 * i for i in range(60)}, solver_options={"form": "primal"}, sizes=0.0
    )
    with pytest.raises(ValueError, match="lambda1"):
        model.fit(rows, tasks=tasks)


SENTENCES = [
    ("choosing.md", "where sizes are open, they do not depend on `random_state`", nothing_depends_on_random_state),
    ("how_sure.md", "`known` has one entry per row: its cluster id, or −1", known_rows_keep_their_clusters),
    ("getting_started.md", "Missing values are refused: impute them first",
     estimators_refuse_missing_values_and_cluster_fills_them_in),
    ("choosing.md", "Bounds that would allow no labelling at all (C = 5, n = 39, l = .1) are widened",
     bounds_that_allow_nothing_are_widened),
    ("getting_started.md", "Linear models fitted at scale keep only sums", linear_models_at_scale_hold_no_rows),
    ("large_data.md", "`lambda1` must then be one number", one_lambda_where_tasks_are_many),
]  # fmt: skip


@pytest.mark.parametrize(("page", "sentence", "check"), SENTENCES, ids=[each[2].__name__ for each in SENTENCES])
def test_a_sentence_stands_on_its_page_and_is_true(page, sentence, check, tmp_path):
    assert sentence in (DOCS / page).read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(tmp_path)
