"""Protocols, verdicts and the supervised counterparts do what they say."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge

from mtclust.core.labels import label_codes
from mtclust.datasets import make_related_tasks
from mtclust.exceptions import UncoupledWarning
from paper.experiments import page
from paper.experiments.claims import (
    CLEAR_NMI,
    DIFFERS,
    FAILS,
    HOLDS,
    NOT_ABOVE,
    NOT_BELOW,
    UNDECIDED,
    Case,
    judge_claims,
    verdict_of,
)
from paper.experiments.methods import (
    OURS,
    fit_ours,
    fit_reference,
    off_diagonal_share,
    true_sizes,
)
from paper.experiments.page import Section, write_page
from paper.experiments.printed import (
    ALL_CUTS,
    LABELS,
    OTHER_DRAWS,
    chosen_settings,
    fit_printed,
    printed_kernel,
    printed_options,
    printed_points,
)
from paper.experiments.protocols import Estimate, as_reported, estimate, with_names
from paper.experiments.table import as_frame, as_row
from paper.experiments.transfer import SupervisedLinear


def rows_of(scores, **columns):
    """One row per draw."""
    return [as_row(experiment="pendigits", draw=draw, nmi=float(score), **columns) for draw, score in enumerate(scores)]


def rbf(method, scores, job=1):
    return rows_of(scores, dataset=f"Job {job}", method=method, kernel="rbf", protocol="no labels", solver="exchange")


def verdict(number, rows):
    judged = judge_claims({"pendigits": as_frame(rows)})["pendigits"]
    return {claim.number: verdict_of(cases) for claim, cases in judged}[number]


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ({1: [0.1, 0.11, 0.1], 2: [0.05, 0.06, 0.05]}, HOLDS),
        ({1: [0.1, 0.11, 0.1], 2: [-0.05, -0.06, -0.05]}, DIFFERS),
        ({1: [-0.1, -0.11, -0.1], 2: [0.001, 0.002, 0.001]}, FAILS),
        ({1: [0.1, 0.11, 0.1], 2: [0.1, -0.11, 0.02]}, UNDECIDED),
        ({1: [0.1]}, UNDECIDED),
    ],
)
def test_verdict_follows_the_paired_differences(gains, expected):
    rows = []
    for job, differences in gains.items():
        alone = np.linspace(0.4, 0.7, len(differences))
        rows += rbf("DSTC", alone, job) + rbf("DMTRC", alone + differences, job)
    assert verdict("P2", rows) == expected


def test_a_failed_row_takes_no_part_in_a_verdict():
    alone = np.array([0.4, 0.5, 0.6])
    rows = rbf("DSTC", alone) + rbf("DMTRC", alone + np.array([0.1, 0.11, 0.1]))
    failed = as_row(experiment="pendigits", dataset="Job 1", draw=3, method="DMTRC", kernel="rbf", error="broken")
    assert verdict("P2", [*rows, failed]) == HOLDS


def printed_frame(scores_by_lambda):
    """λ → draws of NMI after cuts; one job, RBF kernel, width 1."""
    rows = []
    for lambda_, draws in scores_by_lambda.items():
        for draw, after in enumerate(draws):
            details = {"cuts": 20, "nmi_start": 0.3, "nmi_after": after, "left": dict.fromkeys(after, 0.5)}
            setting = {"init": "k-means", "lambda1": lambda_, "lambda2": lambda_, "max_cuts": 20, "width": 1.0}
            key = {"experiment": "pendigits", "dataset": "Job 1", "draw": draw, "method": "DMTRC", "kernel": "rbf"}
            rows.append(as_row(**key, protocol="as printed", setting=setting, details=details))
    return with_names(as_frame(rows))


def test_labels_choose_the_setting_and_cuts_with_the_best_mean_not_the_best_draw():
    frame = printed_frame({
        2.0**-6: [{"0": 0.99, "1": 0.6, "20": 0.1}, {"0": 0.99, "1": 0.6, "20": 0.2}],  # 0 cuts are not the solver's
        2.0**-2: [{"0": 0.1, "1": 0.9, "20": 0.0}, {"0": 0.1, "1": 0.1, "20": 0.0}],  # best draw
        2.0**-10: [{"0": 0.1, "1": 0.95, "20": 0.0}],  # best mean, but not run on all draws
    })  # fmt: skip
    chosen = chosen_settings(frame)
    assert chosen[LABELS]["nmi"].tolist() == [0.6, 0.6]
    assert chosen[ALL_CUTS]["nmi"].tolist() == [0.1, 0.2]
    assert set(printed_points(frame)["start"]) == {0.3}


def test_a_setting_chosen_on_other_draws_has_not_seen_its_own():
    frame = printed_frame({2.0**-2: [{"1": 0.9}, {"1": 0.1}], 2.0**-4: [{"1": 0.2}, {"1": 0.8}]} | {
        2.0**-6: [{"1": 0.5}, {"1": 0.5}]})  # fmt: skip
    found = chosen_settings(frame)[OTHER_DRAWS].set_index("draw")["nmi"]
    assert found.to_dict() == {0: 0.2, 1: 0.1}


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.DegenerateSolutionWarning")
def test_a_longer_run_of_cutting_planes_passes_through_the_shorter_one():
    data = make_related_tasks(2, n_samples=30, separation=2.0, random_state=0)
    kernel = printed_kernel(data, 1.0)
    setting = {"init": "k-means", "lambda1": 2.0**-10, "lambda2": 2.0**-10}
    (short,), (long,) = (fit_printed("DMTRC", data, 0, kernel, setting | {"max_cuts": cuts}) for cuts in (2, 20))
    assert short.details["cuts"] == 2 < long.details["cuts"]
    assert short.nmi == short.details["nmi_after"][2] == long.details["nmi_after"][2]
    assert short.details["left"] == {stop: long.details["left"][stop] for stop in (0, 1, 2)}


def test_a_reference_method_without_settings_is_taken_on_the_draws_of_the_grids():
    km = rows_of([0.5, 0.6, 0.7], dataset="Job 1", method="KM", protocol="no labels")
    grid = rows_of([0.8, 0.9], dataset="Job 1", method="NC", protocol="grid", setting={"width": 1.0})
    rows = [{**row, "nmi_of_starts": row["nmi"]} for row in km + grid]
    best = as_reported(with_names(as_frame(rows)))
    assert best[best["name"] == "KM"]["nmi"].tolist() == [0.5, 0.6]


def test_references_are_the_mean_over_starts_at_the_setting_that_is_best_by_it():
    def grid(width, best, mean):
        rows = rows_of([best] * 2, dataset="Job 1", method="NC", protocol="grid", setting={"width": width})
        return [{**row, "nmi_of_starts": str(mean)} for row in rows]

    tuned = as_reported(with_names(as_frame(grid(0.5, best=0.9, mean=0.6) + grid(1.0, best=0.8, mean=0.7))))
    assert tuned["nmi"].tolist() == [0.7, 0.7]


def test_interval_is_students():
    values = np.array([0.1, 0.12, 0.17, 0.05])
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert estimate(values).interval == pytest.approx((expected.low, expected.high))
    assert estimate([0.5]).interval == (-np.inf, np.inf)
    assert str(estimate([])) == "not run"


def test_equal_methods_are_not_better_and_not_worse():
    same = Estimate(0.0, 0.0, 5)
    assert Case("", same, low=0.0).verdict == FAILS
    assert Case("", same, **NOT_ABOVE).verdict == HOLDS
    assert Case("", same, **NOT_BELOW).verdict == HOLDS
    clear = Estimate(10 * CLEAR_NMI, 0.0, 5)
    assert Case("", clear, **NOT_ABOVE).verdict == FAILS


def test_off_diagonal_share_in_random_axes_is_that_of_random_rotations():
    eigenvalues = np.array([1.0, 0.4, 0.1, 0.0, 0.0])
    rotations = stats.ortho_group.rvs(5, size=4000, random_state=0)
    rotated = [Q @ np.diag(eigenvalues) @ Q.T for Q in rotations]
    shares, nulls = zip(*map(off_diagonal_share, rotated))
    total = (eigenvalues**2).sum()
    # the denominator does not depend on the axes
    assert np.mean(shares) == pytest.approx(nulls[0], abs=0.01)
    assert np.ptp(nulls) < 1e-9 * total


def test_sizes_are_given_only_where_they_differ():
    data = make_related_tasks(2, n_samples=30, random_state=0)
    equal = replace(data, target=np.tile(np.repeat([0, 1, 2], 10), 2))
    assert true_sizes(equal) == "balanced"
    skew = replace(data, target=np.concatenate([np.repeat([0, 1, 2], [16, 8, 6]), np.repeat([0, 1, 2], 10)]))
    assert true_sizes(skew) == {0: [16, 8, 6], 1: [10, 10, 10]}


def printed_objective(name, data, labels, setting):
    """Objective (20) or (10) of the paper at labels: W by least squares and Ω or D in closed form, in turn."""
    X, m = data.data, data.n_tasks
    Y = label_codes(labels, 3)
    d = X.shape[1]
    task = [data.tasks == t for t in range(m)]
    if name == "DSTC":  # DMTRC with one task: the ridge is λ₁ + λ₂
        ridge = setting["lambda1"] + setting["lambda2"]
        parts = [(X[rows] @ X[rows].T / ridge + rows.sum() / 2 * np.eye(rows.sum()), Y[rows]) for rows in task]
        return sum(0.5 * (codes * np.linalg.solve(K, codes)).sum() for K, codes in parts)
    Z = np.eye(m if name == "DMTRC" else d) / (m if name == "DMTRC" else d)
    for _ in range(200):
        inverse = np.linalg.pinv(Z)
        if name == "DMTRC":
            penalty = setting["lambda1"] / 2 * np.eye(m * d) + setting["lambda2"] / 2 * np.kron(inverse, np.eye(d))
        else:
            penalty = setting["lambda1"] / 2 * np.eye(m * d) + setting["lambda2"] / 2 * np.kron(np.eye(m), inverse)
        gram, right = np.zeros((m * d, m * d)), np.zeros((m * d, 3))
        for t, rows in enumerate(task):
            part = slice(t * d, (t + 1) * d)
            gram[part, part] = X[rows].T @ X[rows] / rows.sum()
            right[part] = X[rows].T @ Y[rows] / rows.sum()
        W = np.linalg.solve(gram + penalty, right)
        value = sum((Y[rows] ** 2).sum() / rows.sum() for rows in task) - (right * W).sum()
        V = W.reshape(m, d, 3)
        S = np.einsum("tdc,sdc->ts", V, V) if name == "DMTRC" else np.einsum("tdc,tec->de", V, V)
        values, vectors = np.linalg.eigh(S)
        root = (vectors * np.sqrt(np.maximum(values, 1e-14))) @ vectors.T
        Z = root / np.trace(root)
    return value


@pytest.mark.parametrize("name", ["DSTC", "DMTRC", "DMTFC"])
def test_as_printed_has_the_objective_of_the_paper(name):
    data = make_related_tasks(3, n_samples=24, n_features=6, separation=3.0, random_state=0)
    setting = {"lambda1": 2.0**-2, "lambda2": 2.0**-4}
    kernel = printed_kernel(data)
    options = printed_options(name, kernel, data.n_tasks, setting) | ({} if name == "DSTC" else {"tol": 1e-7})
    model = OURS[name](3, sizes="balanced", random_state=0, **options).fit(kernel, tasks=data.tasks)
    assert model.objective_ == pytest.approx(printed_objective(name, data, model.labels_, setting), rel=1e-3)


def test_one_fit_of_dmtrc_gives_the_coupled_and_the_default_labels(monkeypatch):
    monkeypatch.setattr("mtclust.choose.coupling.LARGEST_LOSS", -10.0)  # whatever coupling gains is not enough
    data = make_related_tasks(3, task_covariance="unrelated", separation=3.0, n_samples=30, random_state=0)
    with pytest.warns(UncoupledWarning):
        coupled, default = fit_ours("DMTRC", data, 0, kernel="linear", sizes="balanced", lambda1=0.01)
    (full,) = fit_ours("DMTRC", data, 0, kernel="linear", sizes="balanced", lambda1=0.01, coupling="full")
    assert coupled.nmi_per_task == pytest.approx(full.nmi_per_task)
    assert coupled.details["omega"] == full.details["omega"]
    assert not default.details["accepted"]
    assert default.nmi == pytest.approx(default.details["nmi_alone"])


def test_reference_rows_hold_the_best_start_and_the_mean_of_all():
    data = make_related_tasks(2, separation=2.0, n_samples=30, random_state=1)
    (one,) = fit_reference("KM", data, 0, 1)
    (many,) = fit_reference("KM", data, 0, 8)
    assert many.objective <= one.objective
    assert 0 < many.nmi_of_starts < 1
    assert many.chosen["n_init"] == 8


def test_supervised_single_tasks_are_ridge_regression():
    data = make_related_tasks(2, n_samples=30, separation=2.0, random_state=0)
    X, y, tasks = data.X_y_tasks
    model = SupervisedLinear("STL").fit(X, y, tasks)
    centred = np.concatenate([X[tasks == task] - X[tasks == task].mean(axis=0) for task in (0, 1)])
    scale = (centred**2).sum(axis=1).mean()
    for task in (0, 1):
        rows = X[tasks == task] - X[tasks == task].mean(axis=0)
        # λ(1 + m)/2 |w|² + |…|²/n on features divided by √scale
        alpha = model.lambda_ * 3 * len(rows) / 2 * scale
        ridge = Ridge(alpha=alpha, fit_intercept=False).fit(rows, label_codes(y[tasks == task], 3))
        scores = model.model_.scores(X[tasks == task], np.full(len(rows), task))
        np.testing.assert_allclose(scores, ridge.predict(rows), atol=1e-8)


def test_supervised_relationship_learns_that_tasks_are_related_and_uses_it():
    accuracy = {"STL": [], "MTRL": []}
    for seed in range(5):
        data = make_related_tasks(4, n_samples=96, separation=3.0, random_state=seed)
        X, y, tasks = data.X_y_tasks
        few = np.arange(len(y)) % 8 == 0
        for kind, found in accuracy.items():
            model = SupervisedLinear(kind).fit(X[few], y[few], tasks[few])
            found.append((model.predict(X[~few], tasks[~few]) == y[~few]).mean())
        assert model.coupling_matrix_.min() > 0
    assert np.mean(accuracy["MTRL"]) > np.mean(accuracy["STL"])


def test_pages_escape_the_marks_of_markdown(tmp_path):
    sections = [Section("t", "", ("|h|",), [["*DMTRC_l", "**holds**"]])]
    write_page(tmp_path / "page.md", "a", "mtclust", "`x` **y**", sections)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert r"| \*DMTRC_l | **holds** |" in page
    assert r"| \|h\| |" in page


def test_a_figure_is_the_same_file_twice(tmp_path):
    for name in ("a", "b"):
        figure, axes = page.panels(1)
        page.lines(axes[0, 0], [1, 2], {"DMTRC_l": [[0.4, 0.6], [0.7]]})
        page.save(figure, tmp_path / name, "nmi", "NMI")
    first, second = (tmp_path / name / "figures" / "nmi.png" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
