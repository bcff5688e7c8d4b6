"""Labels of some rows carried to all rows of a task, against scores by hand."""

import numpy as np
import pytest

from mtclust.core.criterion import CRITERIA, decision_weights
from mtclust.core.labels import neutral_bounds
from mtclust.rows.moments import Data
from mtclust.rows.source import TableRows
from mtclust.search.all_rows import AllRows


@pytest.mark.parametrize("criterion", ["E", "J"])
def test_rows_follow_the_models_of_the_rows_that_were_searched(criterion):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(3), (80, 24, 16)))
    X = 2.0 * np.eye(3)[y] + rng.normal(size=(120, 3))
    source, bounds = TableRows(X, np.array([0, 120])), neutral_bounds(np.array([120]), np.array([3]))
    data = Data(source, source.moments(True), bounds)
    problem = AllRows(data, "independent", np.array([0.1]), 0.05, criterion=CRITERIA[criterion]())
    some = np.arange(0, 120, 2)
    found = problem.carried_labels([some], y[some], problem.coupling.uncoupled())
    # ridge regression on the rows that were searched, each table around its own mean; codes of J and membership give
    # the same order up to a factor
    z, n, ridge = np.eye(3)[y[some]], 60, float(problem.coupling.ridge[0])
    searched, Phi = [(rows - rows.mean(axis=0)) / data.moments.root_scale for rows in (X[some], X)]
    alpha = np.linalg.solve(searched @ searched.T / ridge + 0.5 * n * np.eye(n), z)
    scores = Phi @ searched.T @ alpha / ridge
    plain = scores.argmax(axis=1)
    if criterion == "E":
        share = z.mean(axis=0)
        r_squared = np.sum((z - share) * (z - 0.5 * n * alpha), axis=0) / (n * share * (1 - share))
        scale, constant = decision_weights(share, r_squared)
        scores = scores * scale + constant
        assert np.any(scores.argmax(axis=1) != plain)
    np.testing.assert_array_equal(found.labels, scores.argmax(axis=1))
