"""One list of promises, kept by every form of the data: kernel matrices, explicit features, sparse text and Dask."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import load_digits_tasks, make_related_tasks
from mtclust.exceptions import UncoupledWarning
from mtclust.selection import CouplingDecision, Selection

da = pytest.importorskip("dask.array")

DATA, CLASSES, TASKS = make_related_tasks(3, n_samples=70, separation=6.0, random_state=0).X_y_tasks
#: settings under which nothing is chosen
GIVEN = {"kernel": "linear", "lambda1": 0.01, "lambda2": 0.01, "sizes": "balanced", "n_init": 3, "random_state": 0}
ATTRIBUTES = {
    "labels_", "single_task_labels_", "tasks_", "objective_", "loo_score_", "n_clusters_", "cluster_sizes_", "coef_",
    "intercept_", "task_groups_", "history_", "n_iter_", "converged_", "selection_", "n_features_in_",
    "probabilities_", "outlier_scores_", "cluster_scores_",
}  # fmt: skip
COUPLING = {DMTRC: {"task_covariance_", "task_correlation_"}, DMTFC: {"feature_covariance_"}, DSTC: set()}

FITTED = {}


@dataclass(frozen=True)
class Form:
    """How rows are held, and how an estimator is asked to take them."""

    name: str
    rows: object
    tasks: object = None
    options: tuple = ()

    def model(self, method, n_clusters=3, **changes):
        options = GIVEN | changes
        if self.options:
            options["solver_options"] = {**dict(self.options), **options.get("solver_options", {})}
        return method(n_clusters, **options)

    def fitted(self, method=DMTRC, n_clusters=3, **changes):
        return self.model(method, n_clusters, **changes).fit(self.rows, tasks=self.tasks)

    def once(self, method=DMTRC):
        """The fit without changes, made once for all tests that only look at it."""
        if (self.name, method) not in FITTED:
            FITTED[self.name, method] = self.fitted(method)
        return FITTED[self.name, method]


def wide(rows):
    """The same rows with many columns that say nothing."""
    return sp.csr_matrix(np.hstack([rows, np.zeros((len(rows), 1200))]))


def forms(rows, tasks):
    return [
        Form("kernels", rows, tasks, (("form", "dual"),)),
        Form("features", rows, tasks, (("form", "primal"),)),
        Form("text", wide(rows), tasks, (("form", "primal"),)),
        Form("dask", da.from_array(rows, chunks=(50, rows.shape[1])), da.from_array(tasks, chunks=50)),
    ]


FORMS = forms(DATA, TASKS)
KINDS = {"kernels": "dual", "features": "primal", "text": "primal", "dask": "primal"}


def keep_apart(monkeypatch):
    """Few rows of a Dask collection would be gathered, and searched on whole."""
    monkeypatch.setattr("mtclust.distributed.fit.ALL_ROWS", 0)


@pytest.fixture(params=FORMS, ids=lambda form: form.name)
def form(request, monkeypatch):
    if request.param.name == "dask":
        keep_apart(monkeypatch)
    return request.param


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_attributes_and_what_they_hold(form, method):
    model = form.once(method)
    promised = ATTRIBUTES | COUPLING[method]
    own = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    assert own == promised | {"task_offsets_"}
    assert all(hasattr(model, name) for name in promised)
    labels = np.asarray(model.labels_)
    assert (labels.shape, labels.dtype) == ((len(DATA),), np.int64)
    assert np.asarray(model.single_task_labels_).shape == labels.shape
    assert adjusted_rand_score(CLASSES, labels) > 0.95
    assert model.cluster_sizes_.sum(axis=1).tolist() == np.bincount(TASKS).tolist()
    assert np.ptp(model.cluster_sizes_, axis=1).max() <= 1
    values = [entry["objective"] for entry in model.history_]
    assert np.all(np.diff(values) <= 1e-9)
    assert values[-1] == pytest.approx(model.objective_)
    assert model.converged_
    assert model.n_iter_ >= 1


def test_clusters_are_numbered_by_their_sizes(form):
    model = form.once()
    assert np.all(np.diff(model.cluster_sizes_.sum(axis=0)) <= 0)


def test_what_was_chosen_is_told_in_one_shape(form):
    model = form.fitted(lambda1={0: 0.01, 1: 0.02, 2: 0.03}, coupling="auto")
    assert model.selection_["lambda1"] == {0: 0.01, 1: 0.02, 2: 0.03}
    assert type(model.selection_) is Selection
    assert type(model.selection_.coupling) is CouplingDecision
    assert model.selection_.form == model.selection_["form"] == KINDS[form.name]
    assert {"decision", "reason", "statistic", "similarity"} <= set(model.selection_["coupling"])
    assert model.selection_["task_similarity"].shape == (3, 3)
    one = form.fitted(lambda1=0.02)
    assert one.selection_["lambda1"] == 0.02
    chosen = form.fitted(sizes="auto", lambda1="auto", lambda2="auto", random_state=1)
    assert chosen.selection_["sizes"] == "free"
    assert chosen.selection_["criterion"] in {"J", "E"}
    assert {"name", "score", "separation"} <= set(chosen.selection_["candidates"][0])
    assert chosen.selection_["lambda1"] == chosen.selection_["lambda2"]


def test_options_of_the_search_are_honoured(form, caplog):
    with caplog.at_level("INFO", logger="mtclust"):
        form.fitted(solver_options={})
    assert any("clustering together: start 1 of" in text for text in caplog.messages)
    assert any("clustering alone" in text for text in caplog.messages)
    with pytest.raises(ValueError, match='may only hold "form"'):
        form.fitted(solver_options={"n_starts": 2})


def test_verbose_tells_what_the_fit_is_doing(form, capsys):
    form.fitted(verbose=2)
    printed = capsys.readouterr().out
    assert "[DMTRC] clustering alone" in printed
    assert "[DMTRC] clustering together" in printed
    assert "objective" in printed or ", labels: " in printed
    form.fitted()
    assert capsys.readouterr().out == ""


def test_labels_do_not_depend_on_the_number_of_threads(form):
    one, two = (form.fitted(n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(np.asarray(one.labels_), np.asarray(two.labels_))
    assert one.objective_ == two.objective_


@pytest.mark.parametrize("coupling", ["full", "none", 0.5])
def test_the_coupling_that_was_asked_for_is_used(form, coupling):
    model = form.fitted(coupling=coupling)
    assert model.selection_["coupling"]["decision"] == coupling
    alone = np.eye(3) / 3
    if coupling == "none":
        np.testing.assert_allclose(model.task_covariance_, alone)
        np.testing.assert_array_equal(np.asarray(model.labels_), np.asarray(model.single_task_labels_))
    else:
        assert np.trace(model.task_covariance_) == pytest.approx(1)
        assert np.abs(model.task_covariance_ - alone).max() > 0.01


def test_coupling_that_the_tasks_contradict_is_refused_with_a_warning(form, monkeypatch):
    from mtclust.choose import coupling

    monkeypatch.setattr(coupling, "LARGEST_LOSS", -10.0)  # whatever coupling gains is not enough
    with pytest.warns(UncoupledWarning, match="clustered apart"):
        model = form.fitted(coupling="auto")
    assert model.selection_["coupling"]["decision"] == "none"


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_predict_agrees_with_the_labels_and_knows_its_tasks(form, method):
    model = form.once(method)
    rows = np.asarray(DATA) if form.name != "text" else form.rows
    assert np.mean(model.predict(rows, tasks=TASKS) == np.asarray(model.labels_)) > 0.95
    with pytest.raises(ValueError, match="not in fit"):
        model.predict(rows[:2], tasks=["elsewhere", "elsewhere"])


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_a_new_task_is_clustered_like_the_known_ones(form, method):
    model = form.once(method)
    rows = DATA[TASKS == 1] + 0.5
    new = model.fit_task(wide(rows) if form.name == "text" else rows)
    assert adjusted_rand_score(CLASSES[TASKS == 1], new.labels_) > 0.9
    assert np.mean(new.labels_ == np.asarray(model.labels_)[TASKS == 1]) > 0.9
    assert (new.task_covariance_ is None) == (method is not DMTRC)


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_a_saved_model_predicts_and_clusters_new_tasks_as_before(form, method, tmp_path):
    if form.name == "dask":
        pytest.skip("labels that lie elsewhere are not saved")
    model = form.once(method)
    model.save(tmp_path / "model")
    loaded = mtclust.load(tmp_path / "model")
    rows = form.rows[:9]
    np.testing.assert_array_equal(loaded.predict(rows, tasks=TASKS[:9]), model.predict(rows, tasks=TASKS[:9]))
    np.testing.assert_array_equal(loaded.fit_task(form.rows[:70]).labels_, model.fit_task(form.rows[:70]).labels_)
    assert loaded.selection_.keys() == model.selection_.keys()


def test_all_forms_find_the_same_clusters(monkeypatch):
    """On rows that are not separated, where the search matters."""
    digits = load_digits_tasks()
    found = []
    for other in forms(np.ascontiguousarray(digits.data), digits.tasks):
        if other.name == "dask":
            keep_apart(monkeypatch)
        model = other.fitted(n_clusters=5, lambda1=2.0**-6, lambda2=2.0**-6, coupling="full", n_init=8)
        found.append(np.asarray(model.labels_))
    first, *others = found
    scores = [
        np.mean([adjusted_rand_score(first[digits.tasks == t], labels[digits.tasks == t]) for t in set(digits.tasks)])
        for labels in others
    ]
    assert np.median(scores) >= 0.95
