"""From counts to features, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer

from paper.datasets.files import draw_fraction
from paper.datasets.text import text_features

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


def test_tfidf_is_that_of_sklearn_on_the_terms_there_are(counts):
    X = text_features(counts)
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(counts).toarray()
    there = (counts.toarray() > 0).any(axis=0)
    np.testing.assert_allclose(X.toarray(), expected[:, there])
    before = counts.copy()
    X.data[:] = -1
    np.testing.assert_array_equal(counts.toarray(), before.toarray())


def test_counts_stay_as_they_are(counts):
    X = text_features(counts, weighting="counts")
    np.testing.assert_array_equal(X.toarray(), counts.toarray()[:, (counts.toarray() > 0).any(axis=0)])


def test_components_are_the_principal_ones_of_the_dense_rows(counts):
    X = text_features(counts)
    reduced = text_features(counts, n_components=5)
    expected = PCA(5, svd_solver="full").fit_transform(X.toarray())
    np.testing.assert_allclose(np.abs(reduced), np.abs(expected), atol=1e-8)
    again = text_features(counts, n_components=5)
    np.testing.assert_array_equal(reduced, again)
    with pytest.raises(ValueError, match="less than the number of rows and of terms"):
        text_features(counts, n_components=35)


def test_the_papers_unit_range_before_and_after_the_components(counts):
    before = text_features(counts, weighting="counts", unit_range="before PCA")
    assert before.max(axis=0).toarray().min() == before.max() == 1
    after = text_features(counts, n_components=5, unit_range="after PCA")
    np.testing.assert_array_equal([after.min(axis=0), after.max(axis=0)], [[0] * 5, [1] * 5])


@pytest.mark.parametrize("wrong", [{"weighting": "tf"}, {"unit_range": "yes"}])
def test_wrong_option_is_named(counts, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        text_features(counts, **wrong)


def test_fraction_is_of_each_class_and_draws_are_nested():
    target = np.repeat([0, 1, 2], [100, 50, 3])
    small, large = (draw_fraction(target, fraction, np.random.default_rng(0)) for fraction in (0.1, 0.4))
    assert np.bincount(target[small]).tolist() == [10, 5, 1]
    assert np.bincount(target[large]).tolist() == [40, 20, 1]
    assert set(small.tolist()) <= set(large.tolist())
    for fraction in (0, 1.1):
        with pytest.raises(ValueError, match="fraction"):
            draw_fraction(target, fraction, np.random.default_rng(0))
