"""Text defaults against scikit-learn; nuisance columns against least squares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mtclust import DMTRC
from mtclust.core.kernels import centre_kernel, eigen_features
from mtclust.exceptions import SmallTaskWarning
from mtclust.metrics import macro_nmi
from mtclust.nuisance import NuisanceRemover, remove_nuisance
from mtclust.text import TaskTfidf, log_length
from paper.datasets import fetch_sentiment_tasks

N, D = 60, 25
TASKS = np.array(["b", "a", "c"])[np.arange(N) % 3]
DOCUMENTS = ["a good book", "dull and not good", "not a book", "", "sound sound sound good", "Good sound"]


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    table = rng.poisson(rng.uniform(0.1, 1.5, D), size=(N, D))
    table[4] = 0  # a document without words
    table[TASKS == "a", 1] = 0  # a term that task a lacks
    table[TASKS != "a", 1] = 1
    return sp.csr_array(table)


@pytest.fixture
def rows():
    """Features that depend on the nuisance, differently in every task."""
    rng = np.random.default_rng(1)
    nuisance = rng.normal([100, 0], size=(N, 2))
    effects = {task: rng.normal(size=(2, D)) for task in "abc"}
    X = np.stack([z @ effects[task] for z, task in zip(nuisance, TASKS)]) + rng.normal(size=(N, D))
    return X, nuisance


# -- weights -------------------------------------------------------------------------------------------------------


@parametrize_with_checks([NuisanceRemover()])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("options", [{}, {"min_df": 2}, {"max_df": 0.4}, {"min_df": 0.2, "max_df": 3}])
def test_strings_are_weighted_as_by_sklearn(options):
    ours = clone(TaskTfidf(ngram_range=(1, 2), **options)).fit(DOCUMENTS)
    theirs = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, **options).fit(DOCUMENTS)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    new = [*DOCUMENTS, "book of unknown words"]
    np.testing.assert_allclose(ours.transform(new).toarray(), theirs.transform(new).toarray())


def test_input_is_not_changed(rows):
    X, nuisance = rows
    before = [X.copy(), nuisance.copy()]
    remove_nuisance(X, nuisance, tasks=TASKS)
    NuisanceRemover().fit_transform(X, nuisance=nuisance, tasks=TASKS)
    for now, then in zip([X, nuisance], before):
        np.testing.assert_array_equal(now, then)


TOPICS = [["goal", "match", "team", "coach"], ["vote", "party", "law", "court"]]


def topical_documents():
    rng = np.random.default_rng(0)
    topics, tasks = np.arange(40) % 2, np.repeat(["north", "south"], 20)
    words = [" ".join(rng.choice(TOPICS[topic], 6)) + f" the {task}" for topic, task in zip(topics, tasks)]
    return words, topics, tasks


def test_pipeline_from_strings_to_clusters():
    documents, topics, tasks = topical_documents()
    model = make_pipeline(TaskTfidf(), DMTRC(2, kernel="linear", n_init=2, random_state=0))
    model.fit(documents, dmtrc__tasks=tasks)
    assert macro_nmi(topics, model[-1].labels_, tasks) == pytest.approx(1)
    assert macro_nmi(topics, model.predict(documents, tasks=tasks), tasks) == pytest.approx(1)


def test_pipeline_with_routing():
    documents, topics, tasks = topical_documents()
    length = log_length(documents)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(TaskTfidf(), NuisanceRemover(), DMTRC(2, kernel="linear", n_init=2, random_state=0))
        given = {"tasks": tasks, "nuisance": np.column_stack([length, np.arange(40)])}
        model.fit(documents, **given)
        assert macro_nmi(topics, model.predict(documents, **given), tasks) == pytest.approx(1)


# -- nuisance ------------------------------------------------------------------------------------------------------


def test_length_is_the_number_of_words(counts):
    np.testing.assert_allclose(log_length(counts), np.log(1 + counts.toarray().sum(axis=1)))
    np.testing.assert_array_equal(log_length(counts), log_length(counts.toarray()))
    np.testing.assert_array_equal(log_length(DOCUMENTS), log_length(CountVectorizer().fit_transform(DOCUMENTS)))
    with pytest.raises(ValueError, match="Negative values in data passed to X"):
        log_length([[1.0, -1.0]])
    for act in (log_length, TaskTfidf().fit, TaskTfidf().fit_transform):
        with pytest.raises(ValueError, match="documents must be strings; got None"):
            act(["a good book", None])


def test_residuals_are_those_of_a_regression_per_task(rows):
    X, nuisance = rows
    left = remove_nuisance(X, nuisance, tasks=TASKS)
    for task in "abc":
        part = task == TASKS
        expected = X[part] - LinearRegression().fit(nuisance[part], X[part]).predict(nuisance[part])
        np.testing.assert_allclose(left[part], expected, atol=1e-10)
        np.testing.assert_allclose(left[part].T @ nuisance[part], 0, atol=1e-9)
        np.testing.assert_allclose(left[part].mean(axis=0), 0, atol=1e-12)
    # one regression for all tasks would leave much of it
    assert np.abs(remove_nuisance(X, nuisance)[TASKS == "a"].T @ nuisance[TASKS == "a"]).max() > 1
    np.testing.assert_allclose(remove_nuisance(left, nuisance, tasks=TASKS), left, atol=1e-12)


def test_sparse_and_dense_rows_agree(counts):
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    nuisance = log_length(counts)
    expected = remove_nuisance(X.toarray(), nuisance, tasks=TASKS)
    assert isinstance(expected, np.ndarray)
    for same in (X, sp.csc_matrix(X), pd.DataFrame(X.toarray(), columns=[f"t{i}" for i in range(X.shape[1])])):
        np.testing.assert_allclose(remove_nuisance(same, nuisance, tasks=TASKS), expected, atol=1e-14)
    for columns in (nuisance[:, None], pd.Series(nuisance), sp.csr_array(nuisance[:, None]), nuisance.tolist()):
        np.testing.assert_array_equal(
            remove_nuisance(X, columns, tasks=TASKS), remove_nuisance(X, nuisance, tasks=TASKS)
        )
    order = np.random.default_rng(0).permutation(N)
    shuffled = remove_nuisance(X[order], nuisance[order], tasks=TASKS[order])
    np.testing.assert_allclose(shuffled, expected[order], atol=1e-14)


def test_columns_that_add_nothing_change_nothing(rows):
    X, nuisance = rows
    expected = remove_nuisance(X, nuisance, tasks=TASKS)
    batch = (TASKS[:, None] == ["a", "b", "c"]).astype(float)  # constant within every task
    repeated = np.column_stack([nuisance, 1e6 * nuisance.sum(axis=1), batch, 0.1 * np.ones(N), np.zeros(N)])
    np.testing.assert_allclose(remove_nuisance(X, repeated, tasks=TASKS), expected, atol=1e-9)
    fitted = NuisanceRemover().fit(X, nuisance=repeated, tasks=TASKS)
    np.testing.assert_allclose(fitted.transform(X, nuisance=repeated, tasks=TASKS), expected, atol=1e-8)
    np.testing.assert_allclose(remove_nuisance(X, np.ones(N)), X - X.mean(axis=0), atol=1e-12)


def test_scale_of_nuisance_does_not_matter(rows):
    X, nuisance = rows
    expected = remove_nuisance(X, nuisance, tasks=TASKS)
    np.testing.assert_allclose(remove_nuisance(X, nuisance * [1e-8, 1e8] + 5, tasks=TASKS), expected, atol=1e-6)


def test_task_with_fewer_rows_than_columns_is_left_empty_and_named(rows):
    X, _ = rows
    tasks = np.array(["large"] * (N - 4) + ["single"] + ["small"] * 3)
    nuisance = np.random.default_rng(2).normal(size=(N, 5))
    with pytest.warns(SmallTaskWarning, match=r"2 of 3 tasks .* \(first: 'single'\)"):
        left = remove_nuisance(X, nuisance, tasks=tasks)
    np.testing.assert_allclose(left[-4:], 0, atol=1e-12)
    np.testing.assert_allclose(left[:-4].T @ nuisance[:-4], 0, atol=1e-10)
    with pytest.warns(SmallTaskWarning):
        again = NuisanceRemover().fit_transform(X, nuisance=nuisance, tasks=tasks)
    np.testing.assert_allclose(again, left, atol=1e-10)


def test_transformer_treats_new_rows_with_the_fitted_regressions(rows):
    X, nuisance = rows
    train, new = np.arange(N) < 45, np.arange(N) >= 45
    remover = NuisanceRemover().fit(X[train], nuisance=nuisance[train], tasks=TASKS[train])
    np.testing.assert_allclose(
        remover.transform(X[train], nuisance=nuisance[train], tasks=TASKS[train]),
        remove_nuisance(X[train], nuisance[train], tasks=TASKS[train]),
        atol=1e-9,
    )
    left = remover.transform(sp.csr_array(X[new]), nuisance=nuisance[new], tasks=TASKS[new])
    for task, coefficients in zip(remover.tasks_, remover.coef_):
        known, asked = train & (task == TASKS), TASKS[new] == task
        regression = LinearRegression().fit(nuisance[known], X[known])
        np.testing.assert_allclose(coefficients, regression.coef_.T, atol=1e-9)
        np.testing.assert_allclose(left[asked], (X[new] - regression.predict(nuisance[new]))[asked], atol=1e-9)
    np.testing.assert_array_equal(
        remover.transform(X[:1], nuisance=nuisance[:1], tasks="a"),
        remover.transform(X[:1], nuisance=nuisance[:1], tasks=["a"]),
    )


def test_without_nuisance_nothing_is_removed(rows, counts):
    X, nuisance = rows
    np.testing.assert_array_equal(NuisanceRemover().fit_transform(X, tasks=TASKS), X)
    assert sp.issparse(NuisanceRemover().fit_transform(counts))
    with pytest.raises(ValueError, match="nuisance is given but NuisanceRemover was fitted without"):
        NuisanceRemover().fit(X).transform(X, nuisance=nuisance)
    with pytest.raises(ValueError, match="nuisance is not given but NuisanceRemover was fitted with it"):
        NuisanceRemover().fit(X, nuisance=nuisance).transform(X)
    with pytest.raises(ValueError, match="nuisance has 1 columns but had 2 in fit"):
        NuisanceRemover().fit(X, nuisance=nuisance).transform(X, nuisance=nuisance[:, 0])


@pytest.mark.parametrize(
    ("nuisance", "message"),
    [
        (np.ones(N - 1), "nuisance has 59 rows but X has 60"),
        (np.full(N, np.nan), "nuisance contains NaN"),
        (np.array(["x"] * N), "one-hot encode"),
        (np.array(["x"] * N, dtype=object)[:, None], "one-hot encode"),
        (np.ones((N, 2, 2)), "nuisance must be numbers"),
        (np.ones((N, 0)), "nuisance must be numbers"),
        (None, "nuisance must be numbers"),
        (3.0, "nuisance must be numbers"),
    ],
)
def test_unusable_nuisance_is_named(rows, nuisance, message):
    with pytest.raises(ValueError, match=message):
        remove_nuisance(rows[0], nuisance)


def test_unusable_tasks_are_named(rows):
    X, nuisance = rows
    with pytest.raises(ValueError, match="tasks has 2 entries but X has 60 rows"):
        remove_nuisance(X, nuisance, tasks=["a", "b"])
    with pytest.raises(ValueError, match="tasks has ids that were not in fit: 'z'"):
        NuisanceRemover().fit(X, nuisance=nuisance, tasks=TASKS).transform(X, nuisance=nuisance, tasks="z")


def shared_direction_and_length(kernel, length, tasks):
    """Correlation within tasks of the leading eigenvector of the centred kernel with length; rows sorted by task."""
    sizes = np.unique(tasks, return_counts=True)[1]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    leading = eigen_features(centre_kernel(kernel, offsets, centre=True).matrix, 1).values[:, 0]
    centred = np.concatenate([part - part.mean() for part in np.split(length, offsets[1:-1])])
    return abs(np.corrcoef(leading, centred)[0, 1])


def test_reviews_share_length_until_it_is_removed(data_home):
    reviews = fetch_sentiment_tasks(0.1, 0, weighting="counts")
    length, tasks = log_length(reviews.data), reviews.tasks
    frequency = np.bincount(reviews.data.indices, minlength=reviews.data.shape[1])
    X = TfidfTransformer(sublinear_tf=True).fit_transform(reviews.data[:, frequency <= 0.3 * len(tasks)])
    assert (tasks[:-1] <= tasks[1:]).all()
    left = remove_nuisance(X, length, tasks=tasks)
    assert shared_direction_and_length((X @ X.T).toarray(), length, tasks) > 0.5
    assert shared_direction_and_length(left @ left.T, length, tasks) < 1e-6
