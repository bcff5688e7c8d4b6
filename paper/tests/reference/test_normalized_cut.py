"""Normalised cut against its definition and against scikit-learn's spectral clustering."""

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering

from mtclust.metrics import nmi
from paper.reference import REFERENCE_METHODS
from paper.reference.kernel_methods import cut_of, mean_distance, rbf_kernel, smooth_coordinates, without_loops


def cut_by_definition(graph, labels):
    inside = [labels == k for k in np.unique(labels)]
    return sum(graph[np.ix_(k, ~k)].sum() / graph[k].sum() for k in inside)


def test_objective_is_the_normalised_cut(noise):
    X, tasks = noise
    found = REFERENCE_METHODS["NC"].fit(X, tasks, 3, n_init=3)
    sigma = mean_distance(X)
    total = 0.0
    for task in np.unique(tasks):
        graph = rbf_kernel(X[tasks == task], sigma)
        np.fill_diagonal(graph, 0)
        total += cut_by_definition(graph, found.labels[tasks == task])
    assert found.objective == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("width", [0.25, 1.0])
def test_agrees_with_scikit_learn_on_separated_clusters(width, separated):
    X, _, tasks = separated
    X = X[tasks == "oslo"]
    K = rbf_kernel(X, width * mean_distance(X))
    theirs = SpectralClustering(4, affinity="precomputed", random_state=0).fit_predict(K)
    ours = REFERENCE_METHODS["NC"].fit(X, None, 4, width=width).labels
    assert nmi(theirs, ours) == pytest.approx(1.0)


def test_cut_is_as_low_as_scikit_learn_finds(rows_and_tasks):
    X, tasks = rows_and_tasks
    X = X[tasks == tasks[0]]
    K = rbf_kernel(X, mean_distance(X))
    theirs = SpectralClustering(5, affinity="precomputed", n_init=10, random_state=0).fit_predict(K)
    ours = REFERENCE_METHODS["NC"].fit(X, None, 5, n_init=30)
    assert ours.objective <= cut_of(without_loops(K), theirs) + 1e-9


def test_coordinates_solve_the_generalised_eigenproblem(noise):
    X, _ = noise
    graph = without_loops(rbf_kernel(X, mean_distance(X)))
    coordinates = smooth_coordinates(graph, 4)
    degrees = graph.sum(axis=1)
    for v in coordinates.T:
        gamma = 1 - (v @ graph @ v) / (v @ (degrees * v))
        np.testing.assert_allclose(degrees * v - graph @ v, gamma * degrees * v, atol=1e-10)
    # the smoothest is constant
    np.testing.assert_allclose(coordinates[:, 0], coordinates[0, 0], rtol=1e-8)


def test_a_row_far_from_all_others_is_a_cluster_of_its_own():
    X = np.concatenate([np.random.default_rng(0).normal(size=(30, 2)), [[1e3, 1e3]]])
    labels = REFERENCE_METHODS["NC"].fit(X, None, 2, width=0.05).labels
    assert (labels == labels[-1]).sum() == 1
