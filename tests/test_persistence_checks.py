"""Files whose checksums are right but whose arrays are not: refused on loading, or without any effect."""

import io
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.exceptions import ModelFileError
from tests.conftest import gaussian_tasks
from tests.persistence_helpers import TIMES, forged, rewrite_manifest

X, _, TASKS = gaussian_tasks(rows=12)
NEW = X[:10] + 0.5
QUICK = {"lambda1": 0.1, "n_init": 1, "random_state": 0, "sizes": "balanced"}
PRIMAL = {"solver_options": {"form": "primal"}}
MODELS = {
    "kernel": (DMTRC, {"kernel": "rbf", "width": 1.0}),
    "linear": (DMTFC, {"kernel": "linear"}),
    "features": (DMTRC, {"kernel": "linear", **PRIMAL}),
    "Nyström": (DMTFC, {"kernel": "rbf", "width": 1.0, "n_components": 9, **PRIMAL}),
    "alone": (DSTC, {"kernel": "linear"}),
    "aligned": (DMTRC, {"kernel": "linear", "center": "aligned", "sizes": "auto"}),
    "sparse": (DSTC, {"kernel": "rbf", "width": 1.0, "fit_intercept": False}),
    "common frame": (DMTRC, {"kernel": "rbf", "width": 1.0, "center": "all", "sizes": "auto"}),
}


@cache
def saved_model(name):
    """The bytes of the file of a model."""
    method, options = MODELS[name]
    columns = sp.csr_array((len(X), 2_000_000 // len(X)))  # so many that the table is not made dense
    rows = sp.hstack([sp.csr_array(X), columns], format="csr") if name == "sparse" else X
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as directory:
        warnings.simplefilter("ignore")
        method(3, **QUICK | options).fit(rows, tasks=TASKS).save(Path(directory) / "m")
        mtclust.load(Path(directory) / "m")  # so that what is refused below is refused for what was done to it
        return (Path(directory) / "m").read_bytes()


@pytest.fixture(params=[name for name in MODELS if name != "sparse"])
def saved(request):
    return saved_model(request.param)


def spoiled(rng, array):
    """An array changed in one of the ways in which files are forged."""
    ways = [
        lambda a: a.astype(a.dtype.newbyteorder()),
        lambda a: a.astype({"f": np.float32, "i": np.int32}.get(a.dtype.kind, np.int8)),
        lambda a: a.astype({"f": np.int64, "i": np.float64}.get(a.dtype.kind, np.float64)),
        lambda a: a[:-1],
        lambda a: np.concatenate([a, a[:1]]),
        lambda a: a[None],
        lambda a: a.reshape(-1),
        lambda a: a.T,
        lambda a: np.zeros_like(a),
        lambda a: _with(a, np.nan if a.dtype.kind == "f" else np.iinfo(a.dtype).max if a.dtype.kind == "i" else 0, rng),
        lambda a: _with(a, np.inf if a.dtype.kind == "f" else -1 if a.dtype.kind == "i" else 1, rng),
        lambda a: a.astype("S8") if a.dtype.kind == "i" else a.astype(np.complex128),
    ]
    return ways[rng.integers(len(ways))](array)


def _with(array, value, rng):
    changed = array.copy()
    if changed.size:
        changed.flat[rng.integers(changed.size)] = value
    return changed


def test_arrays_with_other_types_shapes_or_values_are_refused_or_change_nothing_but_values(saved, tmp_path):
    """A model that loads does everything without an error; zeros in place of numbers cannot be told from a model."""
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        names = [name for name in archive.namelist() if name.startswith("arrays/")]
    rng = np.random.default_rng(TIMES - 1)
    refused, damaged = 0, np.repeat(names, 5 * TIMES)
    for name in damaged:
        (tmp_path / "m").write_bytes(forged(saved, name, lambda array: spoiled(rng, array)))
        try:
            loaded = mtclust.load(tmp_path / "m")
        except ModelFileError:
            refused += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.isfinite(loaded.decision_function(X, tasks=loaded.tasks_[TASKS])).all()
            assert loaded.fit_task(NEW).labels_.shape == (10,)
    print(f"{len(damaged)} forged files, {refused} refused")
    assert refused > TIMES * len(names)


def fit(**values):
    return lambda manifest: manifest["model"]["fitted"].update(values)


def state(value, *names):
    """Another value in the place of ``decision``, ``kept`` or one of their fields."""

    def change(manifest):
        place = manifest["model"]
        for name in names[:-1]:
            place = place[name]["fields"]
        place[names[-1]] = value

    return change


def parameters(**values):
    return lambda manifest: manifest["model"]["parameters"].update(values)


def objects(*items):
    return {"type": "objects", "shape": [len(items)], "items": [*items]}


def selected(key, value):
    """Another entry of ``selection_``."""

    def change(manifest):
        items = manifest["model"]["fitted"]["selection_"]["items"]
        items[:] = [*([name, item] for name, item in items if name != key), [key, value]]

    return change


TRIED = [["name", "a"], ["score", "best"], ["separation", 1.0]]
ARRAY = {"type": "array", "name": "arrays/kept.bounds.lower.npy"}
REFUSED = {
    "task twice": ("alone", fit(tasks_=objects("a", "a", "b")), "there twice"),
    "task missing": ("alone", fit(tasks_=objects("a", None, "b")), "no task ids"),
    "no clusters": ("alone", fit(n_clusters_=0), "n_clusters_ is 0"),
    "clusters in words": ("alone", fit(n_clusters_="3"), "n_clusters_ is '3'"),
    "objective in words": ("alone", fit(objective_="low"), "objective_ is 'low', which is no"),
    "converged in words": ("alone", fit(converged_="yes"), "converged_ is 'yes'"),
    "history in words": ("alone", fit(history_=["a"]), "history_ is"),
    "groups in words": ("alone", fit(task_groups_=["a"]), "task_groups_ is"),
    "no decision": ("alone", state(5, "decision"), "decision is 5, which is no"),
    "temperature of nothing": ("alone", state(0.0, "decision", "temperature"), "decision.temperature is 0"),
    "probabilities in words": ("alone", fit(probabilities_="high"), "probabilities_ is a str"),
    "outliers of other rows": (
        "alone", lambda m: fit(outlier_scores_=m["model"]["fitted"]["probabilities_"])(m),
        "outlier_scores_ has the shape",
    ),
    "unknown kernel": ("alone", state("cosine", "decision", "kernel", "kind"), "decision.kernel.kind is 'cosine'"),
    "no width": ("kernel", state(-1.0, "decision", "kernel", "sigma"), "decision.kernel.sigma is -1.0"),
    "no rows to decide by": ("kernel", state(None, "decision", "rows"), "decision has no rows"),
    "no rows": ("kernel", state(None, "kept", "rows"), "it has no rows"),
    "nothing kept": ("alone", state(None, "kept"), "kept is None, which is no"),
    "another thing kept": (
        "alone", lambda m: state(m["model"]["decision"], "kept")(m), "kept is DecisionModel.*, which is no",
    ),
    "unknown method": ("features", state("magic", "kept", "method"), "kept.method is 'magic'"),
    "movable in words": ("features", state("no", "kept", "bounds", "movable"), "kept.bounds.movable is 'no'"),
    "sizes of tasks": ("features", state(ARRAY, "kept", "moments", "sizes"), "sizes has the shape"),
    "fewer rows": ("features", fit(labels_=objects()), "labels_ is an array of object"),
    "scores in words": (
        "alone", selected("candidates", [{"type": "dict", "items": TRIED}]), "score is 'best'",
    ),
    "a criterion in words": ("alone", selected("criterion", "best"), "selection_.criterion is 'best'"),
    "a reason that is none": ("alone", selected("reason", 5), "selection_.reason is 5"),
    "names of other columns": ("alone", fit(feature_names_in_=objects("a")), "feature_names_in_ are not the names"),
    "no landmarks": ("Nyström", state(None, "kept", "features", "landmarks"), "it has no landmarks"),
    "half aligned": ("aligned", state(None, "kept", "means"), "aligned by half of what that takes"),
    "means off sparse rows": ("sparse", state(True, "kept", "centred_rows"), "rows are sparse but have their means"),
    "rounds without end": ("linear", parameters(max_iter=1e308), "max_iter"),
    "sizes in words": ("alone", parameters(sizes="even"), "sizes='even' is not known"),
    "clusters of other tasks": (
        "alone", parameters(n_clusters={"type": "dict", "items": [["a", 3]]}), "n_clusters",
    ),
    "options in words": ("alone", parameters(solver_options="x"), "solver_options"),
}  # fmt: skip


def fitted(name, tmp_path):
    (tmp_path / "m").write_bytes(saved_model(name))
    return tmp_path / "m"


@pytest.mark.parametrize("case", REFUSED)
def test_what_could_not_have_been_fitted_is_refused(case, tmp_path):
    name, change, words = REFUSED[case]
    path = fitted(name, tmp_path)
    rewrite_manifest(path, change)
    with pytest.raises(ModelFileError, match=f"damaged.*{words}"):
        mtclust.load(path)


def test_labels_that_do_not_have_the_sizes_are_refused(tmp_path):
    path = fitted("alone", tmp_path)
    path.write_bytes(forged(path.read_bytes(), "arrays/labels_.npy", lambda labels: (labels > 0).astype(np.int64)))
    with pytest.raises(ModelFileError, match="cluster_sizes_ are not those of labels_"):
        mtclust.load(path)


def test_clusters_that_a_task_does_not_have_are_those_of_its_bounds(tmp_path):
    path = fitted("features", tmp_path)
    path.write_bytes(forged(path.read_bytes(), "arrays/decision.present.npy", np.logical_not))
    with pytest.raises(ModelFileError, match="its tasks do not have the clusters that it decides about"):
        mtclust.load(path)


@pytest.mark.parametrize(
    ("name", "array", "change", "words"),
    [
        ("kernel", "kept.bounds.lower", lambda lower: lower + 99, "lower bounds above the upper ones"),
        ("common frame", "kept.model.present", np.zeros_like, "do not have the clusters of their one model"),
        ("features", "kept.counts", lambda counts: counts + 1, "sizes of its clusters are not those of its tasks"),
        ("features", "kept.moments.sizes", lambda sizes: sizes + 1, "sizes of its clusters are not those of its tasks"),
        ("kernel", "kept.offsets", lambda offsets: offsets + 1, "its rows are not those of 3 tasks"),
    ],
)
def test_arrays_that_contradict_others_are_refused(name, array, change, words, tmp_path):
    path = fitted(name, tmp_path)
    path.write_bytes(forged(path.read_bytes(), f"arrays/{array}.npy", change))
    with pytest.raises(ModelFileError, match=words):
        mtclust.load(path)


def test_keys_made_to_collide_are_refused(tmp_path):
    path = fitted("alone", tmp_path)
    colliding = [i * (2**61 - 1) for i in range(30_000)]
    assert len({hash(i) for i in colliding[:100]}) == 1

    extra = {"type": "dict", "items": [[i, 0] for i in colliding]}
    rewrite_manifest(path, lambda manifest: manifest.update(extra=extra))
    with pytest.raises(ModelFileError, match=r"30000 keys of a dictionary with the same hash"):
        mtclust.load(path)


@pytest.mark.parametrize("candidates", [range(0, 10**15), range(2, 10**15), range(10**15, 2, -1)], ids=repr)
def test_a_range_of_clusters_without_end_is_no_work(candidates, tmp_path):
    path = fitted("alone", tmp_path)
    wanted = {"type": "range", "range": [candidates.start, candidates.stop, candidates.step]}
    rewrite_manifest(path, parameters(n_clusters=wanted))
    model = mtclust.load(path)
    assert model.predict(X, tasks=TASKS).shape == (36,)
    model.set_params(sizes="balanced")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if candidates[0] == 0:
            with pytest.raises(ValueError, match="must hold numbers of clusters >= 2"):
                model.fit(X[:5])
        else:
            assert 2 <= model.fit(X[:5]).n_clusters_ <= 5


def test_sparse_rows_are_checked_too(tmp_path):
    spoil = forged(saved_model("sparse"), "arrays/decision.rows.data.npy", lambda data: np.full_like(data, np.nan))
    (tmp_path / "m").write_bytes(spoil)
    with pytest.raises(ModelFileError, match="holds values that are not finite"):
        mtclust.load(tmp_path / "m")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_models_of_single_precision_load(kernel, tmp_path):
    rows = sp.csc_array(X.astype(np.float32))
    model = DSTC(3, kernel=kernel, width=0.5, n_components=2, **QUICK, **PRIMAL).fit(rows, tasks=TASKS)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(mtclust.load(tmp_path / "m").predict(X, tasks=TASKS), model.predict(X, tasks=TASKS))
