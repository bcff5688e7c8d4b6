"""Very many tasks: common ids, the first coupling, starts and samples agree with those of few, and cost less."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

from mtclust.choose.settings import sample_rows
from mtclust.core import compiled, kernels
from mtclust.core.criterion import PaperObjective
from mtclust.core.labels import SizeBounds
from mtclust.core.matching import _match_many, match_means
from mtclust.core.tasks import index_tasks
from mtclust.search import recipe


def _free(m: int, C: int) -> SizeBounds:
    return SizeBounds(np.zeros((m, C), dtype=np.int64), np.full((m, C), 1000))


def _groups(n_groups: int, per_group: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Class means of tasks in unrelated groups, each task with its clusters in a random order (returned)."""
    rng = np.random.default_rng(seed)
    C, r = 4, 30
    means, orders = [], []
    for _ in range(n_groups):
        centres = rng.normal(size=(C, r))
        centres -= centres.mean(axis=0)
        for _ in range(per_group):
            order = rng.permutation(C)
            means.append((centres + noise * rng.normal(size=(C, r)))[order])
            orders.append(order)
    return np.array(means), np.array(orders)


@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_related_tasks_get_one_id(n_groups, seed):
    means, orders = _groups(n_groups, 40 // n_groups, 0.3, seed)
    ids, similarity = _match_many(means, np.full(orders.shape, 10), _free(*orders.shape))
    per_group = 40 // n_groups
    for g in range(n_groups):
        group = range(g * per_group, (g + 1) * per_group)
        named = {tuple(ids[i][np.argsort(orders[i])]) for i in group}  # the id of each true cluster
        assert len(named) == 1
    assert similarity[0, 1] > 0.8
    if n_groups > 1:
        assert abs(similarity[0, per_group]) < 0.5


def test_it_agrees_with_the_alignment_of_all_pairs():
    means, orders = _groups(2, 6, 0.4, 5)
    m, C = orders.shape
    counts = np.full((m, C), 7)
    flat = means.reshape(m * C, -1)
    products = (flat @ flat.T).reshape(m, C, m, C).transpose(0, 2, 1, 3)
    pairwise, V = match_means(products, counts, _free(m, C))
    ids, similarity = _match_many(means, counts, _free(m, C))
    related = np.kron(np.eye(2), np.ones((6, 6))).astype(bool)
    np.testing.assert_allclose(similarity[related], V[related], atol=1e-10)
    # the same partition of all clusters within each group
    for group in (slice(0, 6), slice(6, 12)):
        step = pairwise[group][0][np.argsort(ids[group][0])]
        np.testing.assert_array_equal(step[ids[group]], pairwise[group])


def test_ids_that_would_break_the_sizes_are_not_given():
    means, _ = _groups(1, 60, 0.3, 1)
    counts = np.tile([5, 6, 7, 8], (60, 1))
    bounds = SizeBounds(counts, counts)
    ids, _ = _match_many(means, counts, bounds)
    np.testing.assert_array_equal(ids, np.tile(np.arange(4), (60, 1)))


def test_leading_eigenvectors_of_a_large_matrix_are_those_of_lapack(monkeypatch):
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    spectrum = np.concatenate([[90.0, 60.0, 40.0, 25.0], rng.uniform(-1, 3, size=296)])
    matrix = (frame * spectrum) @ frame.T
    exact = kernels.largest_eigenvectors(matrix, 4, roughly=True)
    monkeypatch.setattr(kernels, "EXACT_UP_TO", 100)
    values, vectors = kernels.largest_eigenvectors(matrix, 4, roughly=True)
    np.testing.assert_allclose(values, exact[0], rtol=1e-6)
    np.testing.assert_allclose(vectors @ vectors.T, exact[1] @ exact[1].T, atol=1e-4)


@pytest.mark.parametrize("n", [101, 150, 300])
@pytest.mark.parametrize("related", [1e-12, 1e-6, 1e-3])
def test_leading_vectors_are_found_where_nearly_all_eigenvalues_are_equal(n, related):
    """LAPACK leaves some of them out in silence when it is asked for a few."""
    matrix = np.full((n, n), related / n)
    matrix.flat[:: n + 1] = 1 / n
    for k in (1, 2, 5, 20):
        values, vectors = kernels.largest_eigenvectors(matrix, k)
        assert vectors.shape == (n, k)
        npt.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)


def test_the_first_relationship_of_very_many_tasks_is_near_the_exact_one(monkeypatch):
    flat = np.random.default_rng(1).normal(size=(250, 12)) + 2 * np.eye(12)[np.arange(250) % 3]
    flat /= np.linalg.norm(flat, axis=1)[:, None]
    exact = recipe.first_relationship(flat @ flat.T)
    monkeypatch.setattr(kernels, "EXACT_UP_TO", 100)
    monkeypatch.setattr(recipe, "EXACT_UP_TO", 100)
    found = recipe.first_relationship(flat @ flat.T)
    assert np.trace(found) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(found).min() > 0
    assert np.corrcoef(exact.ravel(), found.ravel())[0, 1] > 0.98


def test_labellings_that_were_drawn_before_are_not_refined_again(monkeypatch):
    asked = []
    original = compiled.exchange
    monkeypatch.setattr(compiled, "exchange", lambda *args: asked.append(1) or original(*args))
    Phi = np.random.default_rng(0).normal(size=(3, 2))
    bounds = np.zeros(3, dtype=np.int64), np.full(3, 3)
    found = PaperObjective().starts_of_task(Phi @ Phi.T, 0.1, *bounds, 40, 0)
    assert len(asked) == len(PaperObjective.path)  # three rows in three clusters: one way to begin
    assert 1 <= len(found) <= len(asked)


@pytest.mark.parametrize(("each", "tasks"), [(20, 40), (3, 150), (8, 75)])
def test_settings_of_very_many_tasks_are_chosen_on_as_few_as_are_enough(each, tasks):
    index = index_tasks(np.repeat(np.arange(150), each), 150 * each)
    assert sample_rows(np.zeros((150 * each, 1)), index, 600).index.n_tasks == tasks


@pytest.mark.parametrize("rest", [0.0, 1e-9, 0.3, 0.999])
def test_tasks_that_are_all_alike_have_leading_eigenvectors(rest):
    Omega = np.full((300, 300), rest) + (1 - rest) * np.eye(300)
    values, vectors = kernels.largest_eigenvectors(Omega, 100, roughly=True)
    np.testing.assert_allclose(Omega @ vectors, vectors * values, atol=1e-10)
    np.testing.assert_allclose(values[-1], 1 + 299 * rest, rtol=1e-10)
