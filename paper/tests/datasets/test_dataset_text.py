"""From counts to features, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer

from paper.datasets.files import draw_fraction
from paper.datasets.text import TextOptions, text_features

N_ROWS, N_TERMS = 40, 30


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    table = rng.poisson(rng.uniform(0.05, 1.5, N_TERMS), size=(N_ROWS, N_TERMS))
    table[3] = 0  # a row without words
    table[:, 0] = 0  # a term without rows
    table[: N_ROWS // 2, 1] = 0  # a term of one task only
    table[N_ROWS // 2 :, 1] = 1
    return sp.csr_array(table)


@pytest.fixture
def tasks():
    return np.repeat(["a", "b"], N_ROWS // 2)


NAMES = np.array([f"t{i}" for i in range(N_TERMS)], dtype=object)


@pytest.mark.parametrize("sublinear_tf", [True, False])
@pytest.mark.parametrize("norm", ["l2", None])
def test_tfidf_is_that_of_sklearn(counts, tasks, sublinear_tf, norm):
    X, names = text_features(counts, NAMES, tasks, TextOptions(sublinear_tf=sublinear_tf, norm=norm, min_df=0))
    expected = TfidfTransformer(sublinear_tf=sublinear_tf, norm=norm).fit_transform(counts)
    np.testing.assert_allclose(X.toarray(), expected.toarray())
    assert names.tolist() == NAMES.tolist()


def test_power_of_idf(counts, tasks):
    plain, once, twice = (
        text_features(counts, NAMES, tasks, TextOptions(idf_power=power, norm=None, min_df=0))[0].toarray()
        for power in (0, 1, 2)
    )
    np.testing.assert_allclose(twice * plain, once**2)
    np.testing.assert_allclose(plain[plain > 0], 1 + np.log(counts.toarray()[plain > 0]))


def test_counts_and_binary(counts, tasks):
    as_counts, _ = text_features(counts, NAMES, tasks, TextOptions(weighting="counts", min_df=0))
    np.testing.assert_array_equal(as_counts.toarray(), counts.toarray())
    binary, _ = text_features(counts, NAMES, tasks, TextOptions(weighting="binary", norm=None, min_df=0))
    np.testing.assert_array_equal(binary.toarray(), counts.toarray() > 0)
    scaled, _ = text_features(counts, NAMES, tasks, TextOptions(weighting="binary"))
    lengths = np.linalg.norm(scaled.toarray(), axis=1)
    assert lengths[3] == 0
    np.testing.assert_allclose(np.delete(lengths, 3), 1)


def test_terms_are_chosen_by_frequency_and_task(counts, tasks):
    frequency = (counts.toarray() > 0).sum(axis=0)
    options = TextOptions(min_df=5, max_df=0.5)
    assert (
        text_features(counts, NAMES, tasks, options)[1].tolist() == NAMES[(frequency >= 5) & (frequency <= 20)].tolist()
    )
    assert "t1" in text_features(counts, NAMES, tasks, TextOptions())[1]
    assert "t1" not in text_features(counts, NAMES, tasks, TextOptions(in_every_task=True))[1]
    with pytest.raises(ValueError, match="no term is left"):
        text_features(counts, NAMES, tasks, TextOptions(min_df=N_ROWS + 1))


def test_input_is_not_changed(counts, tasks):
    before = counts.copy()
    for weighting in ("tfidf", "binary", "counts"):
        X, _ = text_features(counts, NAMES, tasks, TextOptions(weighting=weighting, min_df=0))
        X.data[:] = -1
    np.testing.assert_array_equal(counts.toarray(), before.toarray())


def test_components_are_the_principal_ones_of_the_dense_rows(counts, tasks):
    X, _ = text_features(counts, NAMES, tasks, TextOptions())
    reduced, names = text_features(counts, NAMES, tasks, TextOptions(n_components=5))
    expected = PCA(5, svd_solver="full").fit_transform(X.toarray())
    assert names is None
    np.testing.assert_allclose(np.abs(reduced), np.abs(expected), atol=1e-8)
    again, _ = text_features(counts, NAMES, tasks, TextOptions(n_components=5))
    np.testing.assert_array_equal(reduced, again)
    with pytest.raises(ValueError, match="less than the number of rows and of terms"):
        text_features(counts, NAMES, tasks, TextOptions(n_components=35))


def test_the_papers_unit_range_before_and_after_the_components(counts, tasks):
    before, _ = text_features(counts, NAMES, tasks, TextOptions(weighting="counts", unit_range="before PCA"))
    assert before.max(axis=0).toarray().min() == before.max() == 1
    after, _ = text_features(counts, NAMES, tasks, TextOptions(n_components=5, unit_range="after PCA"))
    np.testing.assert_array_equal([after.min(axis=0), after.max(axis=0)], [[0] * 5, [1] * 5])


@pytest.mark.parametrize(
    "wrong",
    [
        {"weighting": "tf"},
        {"norm": "l1"},
        {"min_df": -1},
        {"max_df": 0.0},
        {"max_df": 2.0},
        {"n_components": 0},
        {"unit_range": "yes"},
    ],
)
def test_wrong_option_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TextOptions(**wrong)


def test_fraction_is_of_each_class_and_draws_are_nested():
    target = np.repeat([0, 1, 2], [100, 50, 3])
    small, large = (draw_fraction(target, fraction, np.random.default_rng(0)) for fraction in (0.1, 0.4))
    assert np.bincount(target[small]).tolist() == [10, 5, 1]
    assert np.bincount(target[large]).tolist() == [40, 20, 1]
    assert set(small.tolist()) <= set(large.tolist())
    for fraction in (0, 1.1):
        with pytest.raises(ValueError, match="fraction"):
            draw_fraction(target, fraction, np.random.default_rng(0))
