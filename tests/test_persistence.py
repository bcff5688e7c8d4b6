"""save and load: what comes back is what was saved; anything else is refused, and nothing is ever executed."""

import os
import pickle
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.kernels import Kernel
from mtclust.core.model import DecisionModel
from mtclust.persistence.atomic import atomic_write
from tests.conftest import gaussian_tasks
from tests.persistence_helpers import assert_same, public

X, Y, TASKS = gaussian_tasks()
NEW = gaussian_tasks(n_tasks=4)[0][90:]
NAMES = np.array(["Zürich", "東京", "<b>"])[TASKS]
QUICK = {"random_state": 0, "width": 1.0, "lambda1": 2.0**-8}
METHODS = [DMTRC, DMTFC, DSTC]


def round_trip(model, tmp_path, **options):
    path = tmp_path / "model"
    model.save(path, **options)
    return mtclust.load(path)


# -- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_model_of_all_tasks_in_one_frame_can_be_loaded(kernel, tmp_path):
    model = DMTRC(3, kernel=kernel, center="all", **QUICK).fit(X, tasks=NAMES)
    assert model.intercept_.shape == (3, 3)
    loaded = round_trip(model, tmp_path)
    assert_same(public(loaded), public(model))
    assert_same(loaded.decision_function(NEW, tasks="東京"), model.decision_function(NEW, tasks="東京"))
    assert_same(loaded.fit_task(NEW).labels_, model.fit_task(NEW).labels_)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["rbf", "linear", "sparse", "precomputed"])
def test_a_loaded_model_does_bit_for_bit_what_the_saved_one_does(method, kind, tmp_path):
    rows, new = X, NEW
    if kind == "sparse":
        rows, new = sp.csr_array(X * (np.abs(X) > 1)), sp.csr_array(NEW * (np.abs(NEW) > 1))
    if kind == "precomputed":
        rows, new = rbf_kernel(X), rbf_kernel(NEW, X)
    model = method(3, kernel="rbf" if kind == "sparse" else kind, **QUICK).fit(rows, tasks=NAMES)
    loaded = round_trip(model, tmp_path)
    assert type(loaded) is method
    assert_same(public(loaded), public(model))
    assert loaded.get_params() == model.get_params()
    assert clone(loaded).get_params() == model.get_params()
    for scores in ("decision_function", "predict"):
        assert_same(getattr(loaded, scores)(new, tasks="東京"), getattr(model, scores)(new, tasks="東京"))
        assert_same(getattr(loaded, scores)(rows, tasks=NAMES), getattr(model, scores)(rows, tasks=NAMES))
    if kind == "precomputed":
        with pytest.raises(ValueError, match="fit_task needs the rows themselves"):
            loaded.fit_task(new)
        return
    ours, theirs = loaded.fit_task(new), model.fit_task(new)
    for name in ("labels_", "task_covariance_", "task_correlation_", "objective_"):
        assert_same(getattr(ours, name), getattr(theirs, name))
    assert_same(ours.decision_function(new), theirs.decision_function(new))


def test_scores_do_not_depend_on_how_coefficients_lie_in_memory():
    """Those of a loaded model lie in another order; in tasks of one row rounding decides between equal scores."""
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(40, 3)), rng.normal(size=(40, 3, 4)).transpose(0, 2, 1)
    intercept, present = -np.einsum("icd,id->ic", weights, rows), np.ones((40, 4), dtype=bool)
    one, other = (
        DecisionModel(Kernel("linear"), None, own, intercept, present).scores(rows, np.arange(40))
        for own in (weights, np.ascontiguousarray(weights))
    )
    np.testing.assert_array_equal(one, other)


def test_a_loaded_model_fits_again_as_a_new_one_would(tmp_path):
    model = DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=TASKS)
    loaded = round_trip(model, tmp_path).fit(X[:60], tasks=TASKS[:60])
    np.testing.assert_array_equal(loaded.labels_, clone(model).fit(X[:60], tasks=TASKS[:60]).labels_)


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["a", "b", "c"], dtype=object),
        np.array([1, 2.5, True], dtype=object)[[0, 1, 0]],
        np.array([-5, 0, 7], dtype=np.int16),
        np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[D]"),
        np.array([0.5, -0.0, 1e300]),
    ],
    ids=["object strings", "mixed numbers", "small integers", "dates", "floats"],
)
def test_task_ids_keep_their_type(ids, tmp_path):
    model = DMTRC(3, kernel="linear", **QUICK).fit(X, tasks=ids[TASKS])
    loaded = round_trip(model, tmp_path)
    assert_same(loaded.tasks_, model.tasks_)
    assert_same(loaded.task_groups_, model.task_groups_)
    assert_same(loaded.selection_, model.selection_)
    assert_same(loaded.predict(X, tasks=ids[TASKS]), model.predict(X, tasks=ids[TASKS]))


def test_column_names_and_the_task_column_are_kept(tmp_path):
    frame = pd.DataFrame(X, columns=["größe", "b", "c", "d"]).assign(stadt=NAMES)
    model = DMTFC(3, kernel="linear", task_column="stadt", **QUICK).fit(frame)
    loaded = round_trip(model, tmp_path)
    assert_same(loaded.feature_names_in_, model.feature_names_in_)
    assert_same(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"b": "other"}))


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": {0: 2, 1: 3, 2: 3}},
        {"n_clusters": range(2, 7)},
        {"sizes": (0.1, 0.6)},
        {"sizes": np.full((3, 3), 10)},
        {"sizes": {0: [10, 10, 10], 1: [5, 10, 15], 2: [10, 10, 10]}},
        {"lambda1": {0: 0.1, 1: np.float64(0.2), 2: 1}},
        {"solver": "cutting-plane", "solver_options": {"max_cuts": 2, "init": Y}},
    ],
    ids=lambda parameters: f"{next(iter(parameters))} {type(next(iter(parameters.values()))).__name__}",
)
@pytest.mark.filterwarnings("ignore::mtclust.exceptions.DegenerateSolutionWarning")
def test_parameters_of_every_form_are_kept(parameters, tmp_path):
    model = DMTRC(**{"n_clusters": 3, "kernel": "linear", **QUICK, **parameters}).fit(X, tasks=TASKS)
    loaded = round_trip(model, tmp_path)
    assert_same(loaded.get_params(), model.get_params())
    assert_same(public(loaded), public(model))
    assert_same(loaded.fit_task(NEW, sizes="auto").labels_, model.fit_task(NEW, sizes="auto").labels_)


def test_kernel_matrices_are_not_stored(tmp_path):
    """n = 360: one kernel alone would take a megabyte, the rows take 12 kB and the coefficients 34 kB."""
    rows, _, tasks = gaussian_tasks(rows=120)
    for kernel, given in [("rbf", rows), ("precomputed", rbf_kernel(rows))]:
        model = DMTFC(3, kernel=kernel, n_components=5, n_init=1, **QUICK).fit(given, tasks=tasks)
        model.save(tmp_path / kernel)
        assert (tmp_path / kernel).stat().st_size < 150_000


def test_equal_models_give_equal_files(tmp_path):
    for name in ("a", "b"):
        DMTRC(3, **QUICK).fit(X, tasks=TASKS).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    round_trip(mtclust.load(tmp_path / "a"), tmp_path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize("dump", ["pickle", "joblib"])
@pytest.mark.parametrize("method", METHODS)
def test_pickle_and_joblib_work_before_and_after_loading(dump, method, tmp_path):
    model = method(3, **QUICK).fit(X, tasks=TASKS)
    for each in (model, round_trip(model, tmp_path)):
        if dump == "pickle":
            copy = pickle.loads(pickle.dumps(each))
        else:
            joblib.dump(each, tmp_path / "joblib")
            copy = joblib.load(tmp_path / "joblib")
        assert_same(copy.decision_function(NEW, tasks=1), model.decision_function(NEW, tasks=1))
        assert_same(copy.fit_task(NEW).labels_, model.fit_task(NEW).labels_)


# -- extra, and the values the format knows --------------------------------------------------------------------------


def test_extra_comes_back_only_when_asked_for(tmp_path):
    model = DSTC(3, **QUICK).fit(X)
    extra = {"columns": ["a", "b"], "means": np.arange(3.0), ("x", 1): {None: sp.csr_matrix(np.eye(2))}}
    model.save(tmp_path / "m", extra=extra)
    assert type(mtclust.load(tmp_path / "m")) is DSTC
    assert_same(mtclust.load(tmp_path / "m", return_extra=True)[1], extra)
    model.save(tmp_path / "m")
    assert mtclust.load(tmp_path / "m", return_extra=True)[1] is None


@dataclass(frozen=True)
class _Stranger:
    value: int = 0


@pytest.mark.parametrize(
    "value",
    [
        {1, 2}, OrderedDict(a=1), len, int, object(), 1j, np.array([1, {2}], dtype=object), sp.csc_matrix((2, 2)),
        np.ma.array([1]), np.zeros(2, dtype="i4,f4"), np.void(b"x"), np.complex64(1), np.random.default_rng(0),
        np.random.RandomState(np.random.PCG64(0)), _Stranger(), pd.Series([1]), date(2024, 1, 1), Decimal(1),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_the_format_does_not_know_is_refused_by_its_place(value, tmp_path):
    model = DSTC(3, **QUICK).fit(X)
    with pytest.raises(TypeError, match=r"extra\['a'\]\[1\](\[1\])? cannot be saved"):
        model.save(tmp_path / "m", extra={"a": [0, value]})
    assert list(tmp_path.iterdir()) == []


def test_an_extra_that_holds_itself_is_refused(tmp_path):
    extra = {}
    extra["self"] = extra
    with pytest.raises(ValueError, match="nested too deeply or holds itself"):
        DSTC(3, **QUICK).fit(X).save(tmp_path / "m", extra=extra)
    with pytest.raises(TypeError, match="extra must be a dict; got list"):
        DSTC(3, **QUICK).fit(X).save(tmp_path / "m", extra=[1])


def test_a_file_holds_parameters_public_attributes_and_a_documented_state(tmp_path):
    model = DMTRC(3, **QUICK).fit(X, tasks=TASKS)
    model._notes = {1, 2}  # what is not part of the state is left out
    loaded = round_trip(model, tmp_path)
    assert not hasattr(loaded, "_notes")
    private = {name for name in vars(model) if name.startswith("_")} - {"_notes"}
    assert private == {"_model", "_kept"}


def test_a_fitted_attribute_that_the_schema_does_not_know_is_named(tmp_path):
    model = DSTC(3, **QUICK).fit(X)
    model.mood_ = "good"
    with pytest.raises(TypeError, match=r"mood_ cannot be saved: it has no line in mtclust\.persistence\.schema"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_a_fitted_model_keeps_no_matrix_between_rows(method):
    rows, tasks = np.tile(X, (6, 1)), np.tile(TASKS, 6)
    rows = rows + 0.1 * np.random.default_rng(0).normal(size=rows.shape)
    model = method(3, **QUICK).fit(rows, tasks=tasks)
    assert len(pickle.dumps(model)) < 8 * len(rows) ** 2


def test_a_shared_array_is_stored_once_and_shared_again(tmp_path):
    model = DMTRC(3, **{**QUICK, "kernel": "rbf", "center": "task"}).fit(X, tasks=TASKS)
    loaded = round_trip(model, tmp_path)
    assert model._model.rows is model._kept.rows
    assert loaded._model.rows is loaded._kept.rows


# -- what cannot be saved --------------------------------------------------------------------------------------------


def test_a_callable_kernel_is_refused_with_a_way_out(tmp_path):
    model = DMTRC(3, kernel=rbf_kernel, **QUICK).fit(X, tasks=TASKS)
    with pytest.raises(TypeError, match=r'kernel=<function rbf_kernel.*is a function.*kernel="precomputed"'):
        model.save(tmp_path / "m")


def test_only_fitted_models_of_the_library_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        DMTRC(3).save(tmp_path / "m")

    class Mine(DSTC):
        pass

    with pytest.raises(TypeError, match="model is of type Mine; only DMTFC, DMTRC, DSTC can be saved"):
        Mine(3, **QUICK).fit(X).save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# -- writing ---------------------------------------------------------------------------------------------------------


def test_saving_replaces_an_earlier_file_and_keeps_links_and_permissions(tmp_path):
    target, link = tmp_path / "real", tmp_path / "link"
    target.write_text("earlier")
    target.chmod(0o640)
    link.symlink_to(target)
    DSTC(3, **QUICK).fit(X).save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert mtclust.load(target).n_clusters_ == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_a_new_file_has_the_permissions_any_new_file_has(tmp_path):
    (tmp_path / "plain").touch()
    DSTC(3, **QUICK).fit(X).save(str(tmp_path / "model"))
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_the_earlier_file_and_nothing_else(error, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"earlier")

    def write_half():
        with atomic_write(path) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="limits on the size of files are POSIX's")
def test_a_full_disk_is_an_error_and_leaves_the_earlier_model(tmp_path):
    """A limit on the size of files stands for the full disk; the writes fail in the middle of the arrays."""
    path = tmp_path / "model"
    DSTC(3, **QUICK).fit(X).save(path)
    before = path.read_bytes()
    program = f"""
import resource, signal, mtclust
model = mtclust.load({str(path)!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    model.save({str(path)!r})
except OSError as error:
    print(error.strerror)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == os.strerror(27)
    assert done.stderr == ""
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written_are_named(tmp_path):
    model = DSTC(3, **QUICK).fit(X)
    with pytest.raises(OSError, match="is a directory or no regular file"):
        model.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"missing/m'$"):
        model.save(tmp_path / "missing" / "m")
    with pytest.raises(OSError, match="is a directory or no regular file"):
        model.save("/dev/null")
    with pytest.raises(FileNotFoundError):
        mtclust.load(tmp_path / "nothing")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no directory at hand that nobody can write to")
def test_an_error_of_the_system_names_the_file_that_was_meant():
    """Not the temporary one, whose name the user has never seen."""
    with pytest.raises(OSError, match=r"/proc/self/model'$"):
        DSTC(3, **QUICK).fit(X).save("/proc/self/model")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match=str(tmp_path / "m")):
        DSTC(3, **QUICK).fit(X).save(tmp_path / "m")
