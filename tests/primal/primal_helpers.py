"""Small problems and dense oracles for the tests of the primal form."""

from dataclasses import dataclass

import numpy as np

from mtclust import DMTRC
from mtclust.core.coupling import Independent, Relationship, SharedFeatures
from mtclust.core.kernels import EigenFeatures
from mtclust.core.labels import label_codes, parse_sizes
from mtclust.rows.moments import Data
from mtclust.rows.passes import TaskLabels
from mtclust.rows.source import TableRows
from mtclust.search.all_rows import AllRows


def blobs(sizes, n_clusters=3, d=5, spread=1.0, seed=0, shift=1.0):
    """Overlapping clusters at the same places in every task, sorted by task; returns rows, offsets and classes."""
    rng = np.random.default_rng(seed)
    centres = 2 * rng.normal(size=(n_clusters, d))
    X, y = [], []
    for n in sizes:
        labels = rng.permutation(np.arange(n) % n_clusters)
        X.append(centres[labels] + spread * rng.normal(size=(n, d)) + shift * rng.normal(size=d))
        y.append(labels)
    return np.concatenate(X), np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(y)


def stacked(sizes, **options):
    """Blobs with a task id per row, as the estimators take them."""
    X, _, y = blobs(sizes, **options)
    return X, y, np.repeat(np.arange(len(sizes)), sizes)


@dataclass
class Case:
    """A primal problem beside the explicit features that dense oracles work on."""

    problem: AllRows
    Phi: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray

    @property
    def data(self):
        return self.problem.data

    @property
    def n_clusters(self):
        return self.data.bounds.n_clusters

    @property
    def codes(self):
        return label_codes(self.labels, self.n_clusters)

    @property
    def kernel(self):
        return self.Phi @ self.Phi.T

    def slices(self):
        return [slice(a, b) for a, b in zip(self.offsets[:-1], self.offsets[1:])]

    def b(self):
        """2Φ_iᵀY_i/n_i of every task."""
        codes = self.codes
        return np.stack([2 / (s.stop - s.start) * self.Phi[s].T @ codes[s] for s in self.slices()])

    def dual(self, Z):
        """The dense dual form of the same coupling."""
        problem = self.problem
        if problem.method == "relationship":
            coupling = Relationship(self.kernel, self.offsets, problem.lambda1, problem.lambda2)
        elif problem.method == "features":
            features = EigenFeatures(self.Phi, np.linalg.pinv(self.Phi).T)
            coupling = SharedFeatures(features, self.offsets, float(problem.lambda1[0]), problem.lambda2)
        else:
            coupling = Independent(self.kernel, self.offsets, problem.coupling.ridge)
        return coupling.condition(Z)

    def task_labels(self):
        """The labels as the primal form holds them."""
        C = self.n_clusters
        result = []
        for i, rows in enumerate(self.slices()):
            labels = self.labels[rows]
            table = self.data.source.take(i, np.arange(len(labels))).astype(np.float64)
            sums = np.stack([table[labels == c].sum(axis=0) for c in range(C)])
            result.append(TaskLabels(labels.astype(np.int32), np.zeros(C), sums, np.bincount(labels, minlength=C)))
        return result


def centred_directly(X, offsets, centre=True):
    """Features as the model sees them, and their scale, from the definition in extended precision."""
    rows = np.array(X, dtype=np.longdouble)
    if centre:
        for a, b in zip(offsets[:-1], offsets[1:]):
            rows[a:b] -= rows[a:b].mean(axis=0)
    scale = np.mean(np.sum(rows**2, axis=1))
    return (rows / np.sqrt(scale)).astype(np.float64), float(scale)


def case(
    method="relationship", sizes=(40, 30, 50), n_clusters=3, d=5, seed=0, lambda1=0.02, lambda2=0.01, rule="balanced",
    spread=1.0, centre=True,
):  # fmt: skip
    """A problem with random labels; ``rule`` is what the estimators take as ``sizes``."""
    X, offsets, _ = blobs(sizes, n_clusters, d, spread, seed)
    source = TableRows(X, offsets)
    own = source.moments(centre)
    Phi, _ = centred_directly(X, offsets, centre)
    by_task = np.broadcast_to(np.asarray(lambda1, dtype=float), (len(sizes),)).copy()
    bounds = parse_sizes(rule, sizes, n_clusters)
    rng = np.random.default_rng(seed + 1)
    labels = np.concatenate([rng.permutation(np.arange(n) % n_clusters) for n in sizes])
    return Case(AllRows(Data(source, own, bounds), method, by_task, lambda2), Phi, offsets, labels)


def random_coupling(m, rng, smallest=None):
    """A trace-one covariance, its smallest eigenvalue set if asked for."""
    A = rng.normal(size=(m, m))
    eigenvalues, vectors = np.linalg.eigh(A @ A.T)
    if smallest is not None:
        eigenvalues = np.geomspace(smallest, 1.0, m)
    Z = (vectors * eigenvalues) @ vectors.T
    return Z / np.trace(Z)


#: settings under which nothing is chosen
FIXED = {"kernel": "linear", "lambda1": 0.01, "sizes": "balanced", "random_state": 0}


def primal(method=DMTRC, n_clusters=3, **options):
    if method is DMTRC:
        options = {"coupling": "full"} | options
    return method(n_clusters, solver_options={"form": "primal"}, **FIXED | options)
