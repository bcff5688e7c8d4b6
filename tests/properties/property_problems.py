"""Generated problems, and the objective and scores of given labels from their definition."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.labels import label_codes

METHODS = {"DMTRC": DMTRC, "DMTFC": DMTFC, "DSTC": DSTC}
WIDTH = 0.7


@dataclass(frozen=True)
class Problem:
    """Rows of several tasks with everything an estimator is told."""

    X: np.ndarray
    tasks: np.ndarray
    method: str
    kernel: str
    form: str
    n_clusters: int
    sizes: object
    penalty: float
    fit_intercept: bool
    seed: int

    def __repr__(self):
        told = (self.method, self.kernel, self.form, self.n_clusters, self.sizes, self.penalty, self.fit_intercept)
        return f"Problem({told}, seed={self.seed}, tasks={self.tasks.tolist()}, X={self.X.tolist()})"

    def estimator(self, **options):
        given = {"coupling": "full"} if self.method == "DMTRC" else {}
        return METHODS[self.method](
            self.n_clusters,
            kernel=self.kernel,
            width=WIDTH,
            lambda1=self.penalty,
            lambda2=0.5 * self.penalty,
            sizes=self.sizes,
            fit_intercept=self.fit_intercept,
            n_init=2,
            solver_options={"form": self.form},
            random_state=self.seed % 2**31,
            **given | options,
        )

    def fit(self, X=None, tasks=None, **options):
        X = self.X if X is None else X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # small tasks, rows that do not differ, too few rounds
            return self.estimator(**options).fit(X, tasks=self.tasks if tasks is None else tasks)

    def changed(self, **changes):
        return replace(self, **changes)


KINDS = ("normal", "clusters", "integers", "duplicates", "rank one", "constant task", "heavy tails")


def rows_of(kind, sizes, d, seed):
    """Rows of a kind, and their task ids in mixed order."""
    rng = np.random.default_rng(seed)
    tasks = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    n = len(tasks)
    X = rng.normal(size=(n, d))
    if kind == "clusters":
        X = 0.2 * X + 3 * rng.normal(size=(4, d))[rng.integers(4, size=n)]
    elif kind == "integers":
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
    elif kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), size=n)]
    elif kind == "rank one":
        X = X[:, :1] * rng.normal(size=d)
    elif kind == "constant task":
        X[tasks == 0] = 1.5
    elif kind == "heavy tails":
        X = rng.standard_cauchy(size=(n, d))
    return X + rng.choice([0.0, 10.0]) * rng.normal(size=(len(sizes), d))[tasks], tasks


@st.composite
def problems(draw, methods=tuple(METHODS), kernels=("linear", "rbf"), forms=("dual", "primal"), kinds=KINDS):
    n_clusters = draw(st.integers(2, 4))
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) >= 6))
    seed = draw(st.integers(0, 2**32 - 1))
    X, tasks = rows_of(draw(st.sampled_from(kinds)), sizes, draw(st.integers(1, 5)), seed)
    return Problem(
        X,
        tasks,
        draw(st.sampled_from(methods)),
        draw(st.sampled_from(kernels)),
        draw(st.sampled_from(forms)),
        n_clusters,
        draw(st.sampled_from(["balanced", 0.1, 0.4, 1.0, (0.0, 1.0), (0.1, 0.8)])),
        draw(st.sampled_from([1e-4, 1e-2, 1.0, 100.0])),
        draw(st.booleans()),
        seed,
    )


def centred_kernel(problem, X, tasks):
    """The kernel as the model sees it, by its definition; zero where no row differs from the mean of its task."""
    rows = np.array(X, dtype=np.longdouble)
    if problem.kernel == "linear":
        if problem.fit_intercept:
            for task in np.unique(tasks):
                rows[tasks == task] -= rows[tasks == task].mean(axis=0)
        K = (rows @ rows.T).astype(float)
    else:
        if problem.fit_intercept:
            for task in np.unique(tasks):
                rows[tasks == task] -= rows[tasks == task].mean(axis=0)
        distances = cdist(rows.astype(float), rows.astype(float))
        pairs = tasks[:, None] == tasks
        sigma = WIDTH * distances[pairs].sum() / max(pairs.sum() - len(X), 1)
        sigma = sigma or WIDTH * distances.sum() / (len(X) * (len(X) - 1))  # the rows of no task differ
        K = np.exp(-0.5 * (distances / sigma) ** 2) if sigma > 0 else np.ones_like(distances)
        if problem.fit_intercept:
            one = tasks[:, None] == tasks
            H = np.eye(len(X)) - one / one.sum(axis=1, keepdims=True)
            K = H @ K @ H
    # against the level before anything was centred, which an RBF kernel has in no units
    raw = float(np.mean(np.sum(X.astype(float) ** 2, axis=1))) if problem.kernel == "linear" else 1.0
    level = K.diagonal().mean()
    return K / level if level > 1e-13 * raw else np.zeros_like(K)


def objective_and_scores(problem, model, X=None, tasks=None, labels=None):
    """J and F = Y − (n_i/2)α of labels under the coupling of a fitted model, by dense linear algebra."""
    X = problem.X if X is None else X
    tasks = problem.tasks if tasks is None else tasks
    labels = model.labels_ if labels is None else labels
    names, task_of, sizes = np.unique(tasks, return_inverse=True, return_counts=True)
    m, lambda1, lambda2 = len(names), problem.penalty, 0.5 * problem.penalty
    if problem.method == "DMTFC":
        D = model.feature_covariance_
        weight = lambda2 * m / model.selection_["n_components"]
        rows = np.array(X, dtype=np.longdouble)
        if problem.fit_intercept:
            for task in names:
                rows[tasks == task] -= rows[tasks == task].mean(axis=0)
        rows = (rows / np.sqrt(np.mean(np.sum(rows**2, axis=1)))).astype(float)
        G = D @ np.linalg.inv(lambda1 * D + weight * np.eye(len(D)))
        coupled = rows @ G @ rows.T * (task_of[:, None] == task_of)
    else:
        K = centred_kernel(problem, X, tasks)
        if problem.method == "DMTRC":
            Omega = model.task_covariance_
            G = Omega @ np.linalg.inv(lambda1 * Omega + lambda2 * np.eye(m))
        else:
            G = np.eye(m) / (lambda1 + lambda2)
        coupled = K * G[np.ix_(task_of, task_of)]
    codes = label_codes(labels, problem.n_clusters)
    half = 0.5 * sizes[task_of]
    alpha = np.linalg.solve(coupled + np.diag(half), codes)
    return 0.5 * float(np.vdot(codes, alpha)), codes - half[:, None] * alpha


def no_variation(problem):
    """Whether no row differs from the others of its task, up to rounding."""
    return not centred_kernel(problem, problem.X, problem.tasks).any()
