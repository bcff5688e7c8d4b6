r"""The judge: one score that compares labels, whichever method, kernel or frame they were found with.

Labels of rows X of several tasks are described by a few *terms*, and the score is their weighted sum. The terms were
chosen on public labelled tables (``make learn-judge``), whole tables left out to validate; no label of the rows that
are clustered is ever used. The terms of all candidates are computed at once:

- *separation*: how well membership is predicted for rows that are left out, by ridge regression in several kernels: a
  cut that only one kernel can see scores low under the others. For one kernel, centred rows of a group i (a task, or
  all rows), shares π_ic of cluster c and leave-one-out residuals e_ic (:mod:`mtclust.core.criterion`)

  .. math:: R_c^2 = 1 - \frac{\sum_i \|e_{ic}\|^2}{\sum_i n_i\pi_{ic}(1-\pi_{ic})}, \qquad
            s_c = \frac{R_c^2 - b_c}{1 - b_c}

  where b is what the best clusters of structureless rows get with as many clusters. The mean of s_c over clusters and
  kernels, each at its best λ of a grid, is 1 for membership that is predicted perfectly, about 0 for the best clusters
  of structureless rows, and what people are shown as separation.
- *length*: the shortest description of the rows' normal scores over all frames (:mod:`mtclust.choose.frames`)
- *evenness*: H(π)/log C of the cluster sizes over all rows
- *agreement*: information shared with the other candidates given the task, over the root of the entropies

Separation is taken within tasks, and over all rows after tasks were aligned.

Nothing is drawn at random: the same data give the same judgement.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from scipy.spatial.distance import cdist
from scipy.special import entr

from mtclust.choose import frames
from mtclust.core import Array, Labels
from mtclust.core.criterion import SMALLEST_RESIDUAL
from mtclust.core.order import information

#: weight of every term in the score; those that ``make learn-judge`` learns gain nothing on tables that were left out
WEIGHTS: dict[str, float] = {
    "length": 0.75,
    "separation": 0.5,
    "separation, aligned": 0.5,
    "evenness": 1.25,
    "agreement": 1.0,
}
#: widths of the RBF kernels beside the linear one, in mean distances between two rows of a group; λ of the ridge
_WIDTHS = (0.5, 1.0, 2.0)
_LAMBDAS = 2.0 ** np.arange(3, -12, -2)
#: R² that the best 1 … 12 clusters of Gaussian rows reach
_NOISE = np.array((0.0, 0.75, 0.70, 0.66, 0.63, 0.60, 0.57, 0.54, 0.52, 0.50, 0.48, 0.46))
#: rows of a group that are judged
_ROWS = 250


class Predictability:
    """Leave-one-out predictability of labels, of rows X (n × d) in numbered groups (n) that are centred each."""

    def __init__(self, X: Array, groups: Labels) -> None:
        members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
        members = [rows for rows in members if len(rows) > 1]
        parts = [rows[np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(np.int64)] for rows in members]
        distances = [cdist(X[part], X[part]) for part in parts]
        pairs = sum(len(part) * (len(part) - 1) for part in parts)
        unit = sum(float(D.sum()) for D in distances) / max(pairs, 1) or 1.0
        centred = [X[part] - X[part].mean(axis=0) for part in parts]
        kernels = [[x @ x.T for x in centred]]
        kernels += [[np.exp(-0.5 * (D / (width * unit)) ** 2) for D in distances] for width in _WIDTHS]
        self._spectra: list[list[tuple[Labels, Array, Array, Array]]] = []
        for own in kernels:  # with a common scale: the mean diagonal over all rows is 1
            centred = [K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() for K in own]
            level = sum(float(np.trace(K)) for K in centred) / max(sum(len(K) for K in centred), 1)
            self._spectra.append([])
            for rows, K in zip(parts, centred):  # s/(s + nλ/2) (λ × r) and diag(R) (n × λ)
                n = len(rows)
                s, U = sla.eigh(K / (level if level > 0 else 1.0), driver="evd", check_finite=False)
                keep = s > 1e-5  # far below the smallest nλ/2 that they are compared to
                s, U = s[keep], U[:, keep]
                filters = s / (s + 0.5 * n * _LAMBDAS[:, None])
                residual = np.maximum(1.0 - 1.0 / n - (U**2) @ filters.T, SMALLEST_RESIDUAL)
                self._spectra[-1].append((rows, U, filters, residual))

    def of(self, labels: Labels, n_clusters: int) -> Array:
        """s_c of labels (K × n) by kernel, labelling and cluster (kernels × K × C)."""
        K, C = len(labels), n_clusters
        flat_total, flat_noise = np.zeros(K * C), np.zeros(K * C)
        errors = np.zeros((len(self._spectra), len(_LAMBDAS), K * C))
        for kernel, spectra in enumerate(self._spectra):
            for rows, U, filters, residual in spectra:
                n = len(rows)
                z = np.zeros((n, K * C))
                z[np.arange(n)[:, None], np.arange(K) * C + labels[:, rows].T] = 1.0
                mean = z.mean(axis=0)
                projected = U.T @ z
                for k, f in enumerate(filters):
                    e = z - mean - U @ (f[:, None] * projected)
                    e /= residual[:, k : k + 1]
                    errors[kernel, k] += np.einsum("nc,nc->c", e, e) * ((n - 1) / n) ** 2
                if kernel == 0:
                    variance = n * mean * (1 - mean)
                    present = np.count_nonzero(mean.reshape(K, C), axis=1)
                    flat_total += variance
                    flat_noise += variance * np.repeat(_NOISE[np.clip(present, 1, len(_NOISE)) - 1], C)
        total, noise = flat_total.reshape(K, C), flat_noise.reshape(K, C)
        held = total > 0
        unit = np.where(held, total, 1.0)
        level = noise / unit
        r_squared = 1.0 - errors.reshape(len(self._spectra), -1, K, C) / unit
        best = (r_squared * held).sum(axis=3).argmax(axis=1)
        r_squared = np.take_along_axis(r_squared, best[:, None, :, None], axis=1)[:, 0]
        return np.where(held, (r_squared - level) / (1.0 - level), 0.0)

    def by_cluster(self, labels: Labels, n_clusters: int) -> Array:
        """How well every cluster of one labelling is separated: 1 where membership is predicted perfectly."""
        return np.asarray(self.of(labels[None], n_clusters).mean(axis=0)[0])


class Judge:
    """Terms and scores of labels of the same rows X (n × d); what was computed of a labelling is kept.

    ``aligned`` are the rows after every task was moved back by its offset; X itself by default.
    """

    def __init__(self, X: Array, tasks: Labels, n_clusters: int, aligned: Array | None = None) -> None:
        self._tasks, self._n_clusters = tasks, n_clusters
        self._Y, self._E = frames.directions(frames.normal_scores(X, tasks), tasks, information(X))
        one = np.zeros(len(X), dtype=np.int64)
        within = Predictability(X, tasks)
        in_one = within if tasks.max() == 0 else Predictability(X if aligned is None else aligned, one)
        self._views = {"separation": within, "separation, aligned": in_one}
        self._known: dict[bytes, dict[str, float]] = {}

    def of(self, labels: Labels) -> tuple[Array, dict[str, Array]]:
        """The score of each of the labellings (K × n), of which only differences count, and its terms by name."""
        keys, C = [own.tobytes() for own in labels], self._n_clusters
        new = [k for k, key in enumerate(keys) if key not in self._known and key not in keys[:k]]
        if new:
            by_view = {view: view.of(labels[new], C).mean(axis=(0, 2)) for view in set(self._views.values())}
            for k, row in enumerate(new):
                shares = np.bincount(labels[row], minlength=C) / len(labels[row])
                self._known[keys[row]] = {
                    "length": -min(frames.lengths(self._Y, self._E, self._tasks, labels[row], C).values()),
                    "evenness": float(entr(shares).sum() / np.log(max(C, 2))),
                } | {name: float(by_view[view][k]) for name, view in self._views.items()}
        found = {name: np.array([self._known[key][name] for key in keys]) for name in self._known[keys[0]]}
        found["agreement"] = _agreement(self._tasks, labels, C)
        return np.asarray(sum(weight * found[name] for name, weight in WEIGHTS.items())), found


def _agreement(tasks: Labels, labels: Labels, n_clusters: int) -> Array:
    """Mean over the other labellings of I(k; j | task)/√(H(k | task) H(j | task)); 0 where one says nothing."""
    m, C, K = int(tasks.max()) + 1, n_clusters, len(labels)
    of_tasks = float(entr(np.bincount(tasks) / len(tasks)).sum())
    counts = np.stack([np.bincount(tasks * C + own, minlength=m * C) for own in labels])
    entropy = np.maximum(entr(counts / len(tasks)).sum(axis=1) - of_tasks, 0.0)  # of one cluster, 0 but for rounding
    found = np.zeros((K, K))
    for i in range(1, K):
        cells = ((tasks * C + labels[i]) * C + labels[:i]) + (np.arange(i) * m * C * C)[:, None]
        joint = np.bincount(cells.ravel(), minlength=i * m * C * C).reshape(i, -1) / len(tasks)
        root = np.sqrt(entropy[i] * entropy[:i])
        shared = entropy[i] + entropy[:i] - (entr(joint).sum(axis=1) - of_tasks)
        found[i, :i] = found[:i, i] = np.divide(shared, root, out=np.zeros(i), where=root > 1e-9)
    return np.asarray(found.sum(axis=1) / max(K - 1, 1))
