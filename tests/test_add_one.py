"""To add a coupling, a kernel or a source of rows, one class or function and one line are enough."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils._param_validation import StrOptions

from mtclust import DMTRC
from mtclust.core.coupling import COUPLINGS, Relationship
from mtclust.core.kernels import KERNELS
from mtclust.core.labels import parse_sizes
from mtclust.rows.moments import Data
from mtclust.rows.source import LocalRows, TableRows
from mtclust.search.all_rows import AllRows
from mtclust.search.problem import Effort


def related(m=3, rows=40, d=4, C=3, seed=0):
    """Clusters at the same places in every task, tasks shifted against each other."""
    rng = np.random.default_rng(seed)
    tasks, classes = np.repeat(np.arange(m), rows), np.tile(np.arange(rows) % C, m)
    centres = 4 * rng.normal(size=(C, d))
    return centres[classes] + rng.normal(size=(m, d))[tasks] + rng.normal(size=(m * rows, d)), tasks, classes


class Alike(Relationship):
    """All tasks equally related, whatever their labels: Ω is not learned."""

    def condition(self, Z):
        m = self.n_tasks
        return super().condition(0.5 * np.eye(m) / m + 0.5 * np.full((m, m), 1 / m**2) * m)


class TasksAlike(DMTRC):
    _coupled_by = "alike"


@pytest.mark.parametrize("form", ["dual", "primal"])
def test_a_coupling(form, monkeypatch):
    monkeypatch.setitem(COUPLINGS, "alike", Alike)
    X, tasks, classes = related()
    settings = {"kernel": "linear", "lambda1": 0.02, "coupling": "full", "sizes": "balanced", "random_state": 0}
    model = TasksAlike(3, solver_options={"form": form}, **settings).fit(X, tasks=tasks)
    np.testing.assert_allclose(model.task_covariance_, np.eye(3) / 6 + np.full((3, 3), 1 / 6))
    assert adjusted_rand_score(classes, model.labels_) > 0.9
    assert DMTRC(3, **settings).fit(X, tasks=tasks).objective_ <= model.objective_ + 1e-9
    assert model.fit_task(X[tasks == 0]).task_covariance_.shape == (4, 4)


@pytest.mark.parametrize("form", ["dual", "primal"])
@pytest.mark.parametrize("sizes", ["auto", "balanced"])
def test_a_kernel(form, sizes, monkeypatch):
    monkeypatch.setitem(KERNELS, "cauchy", lambda A, B, sigma: 1 / (1 + euclidean_distances(A, B, squared=True) / 9))
    checks = DMTRC._parameter_constraints["kernel"]
    monkeypatch.setitem(DMTRC._parameter_constraints, "kernel", [StrOptions({*checks[0].options, "cauchy"})])
    X, tasks, classes = related()
    model = DMTRC(3, kernel="cauchy", sizes=sizes, solver_options={"form": form}, random_state=0)
    model.fit(X, tasks=tasks)
    assert model.selection_.kernel == "cauchy"
    assert adjusted_rand_score(classes, model.labels_) > 0.9
    assert np.mean(model.predict(X, tasks=tasks) == model.labels_) > 0.9


@dataclass(frozen=True)
class Halves(LocalRows):
    """Rows of small numbers, kept as whole thousandths in 16 bits."""

    table: np.ndarray
    offsets: np.ndarray

    @property
    def n_features(self) -> int:
        return self.table.shape[1]

    def blocks(self, task: int) -> Iterator[tuple[int, int, np.ndarray]]:
        n = int(self.offsets[task + 1] - self.offsets[task])
        for begin in range(0, n, 25):
            end = min(n, begin + 25)
            yield begin, end, self.take(task, np.arange(begin, end))

    def take(self, task: int, positions: np.ndarray) -> np.ndarray:
        return self.table[positions + self.offsets[task]] / 1000.0


def test_a_source_of_rows():
    X, _, classes = related(rows=90)
    thousandths, offsets = np.round(1000 * X).astype(np.int16), 90 * np.arange(4)
    ends = []
    for source in (Halves(thousandths, offsets), TableRows(thousandths / 1000.0, offsets)):
        data = Data(source, source.moments(True), parse_sizes("balanced", [90, 90, 90], 3))
        problem = AllRows(data, "relationship", np.full(3, 0.02), 0.02)
        some = [np.arange(0, 90, 4)] * 3
        labels = np.concatenate([classes[a + part] for a, part in zip(offsets, some)])
        point = problem.carried_labels(some, labels, problem.coupling.uncoupled())
        ends.append(problem.descend(point, np.random.default_rng(0), Effort("all rows")))
    np.testing.assert_array_equal(ends[0].labels, ends[1].labels)
    assert ends[0].value == pytest.approx(ends[1].value, rel=1e-10)
    assert adjusted_rand_score(classes, ends[0].labels) > 0.9
