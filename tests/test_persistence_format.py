"""The format of saved models: values come back the same; damaged and hostile files are refused, nothing is executed."""

import io
import json
import pickle
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.exceptions import ModelFileError
from mtclust.persistence.format import MANIFEST, decode, encode
from tests.conftest import gaussian_tasks
from tests.persistence_helpers import TIMES, assert_same, forged, public, rewritten

X, Y, TASKS = gaussian_tasks()
NEW = gaussian_tasks(n_tasks=4)[0][90:]
NAMES = np.array(["Zürich", "東京", "<b>"])[TASKS]
QUICK = {"random_state": 0, "width": 1.0, "lambda1": 2.0**-8}
METHODS = [DMTRC, DMTFC, DSTC]
SAVED = Path(__file__).parent / "saved_models"


# -- values ----------------------------------------------------------------------------------------------------------


def through_json(value):
    arrays = {}
    text = json.dumps(encode(value, "value", arrays), allow_nan=False)
    return decode(json.loads(text), arrays)


plain = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text()
    | st.datetimes() | st.timedeltas()
    | st.floats(width=32).map(np.float32) | st.integers(-100, 100).map(np.int8) | st.booleans().map(np.bool_)
    | st.text(alphabet="aü東").map(np.str_)
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(
    st.recursive(
        plain,
        lambda inner: (
            st.lists(inner)
            | st.lists(inner).map(tuple)
            | st.dictionaries(plain | st.tuples(plain, plain), inner)
            | st.lists(inner).map(lambda items: np.array([*items, None, ()], dtype=object)[:-2])
        ),
        max_leaves=12,
    )
)
def test_every_value_the_format_knows_comes_back_the_same(value):
    assert_same(through_json(value), value)


@pytest.mark.parametrize(
    "value",
    [
        range(3, -9, -2), np.datetime64("2020-01-01T00:00:01", "s"), np.timedelta64(3, "s"), np.array(5),
        np.array([[np.nan, -0.0, np.inf]]), np.array([["ä", ""]]), np.zeros((0, 3), dtype=">i4"),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array([[1, None], ["x", (2,)]], dtype=object),
        sp.csr_matrix((2, 3)), sp.csr_array(np.diag([1.0, 0.0, 3.0])),
        datetime(2020, 1, 2, 3, fold=1), timedelta(-1, 5), "\ud800",
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_with_a_form_of_their_own_come_back_the_same(value):
    assert_same(through_json(value), value)


@pytest.mark.parametrize("path", sorted(SAVED.iterdir()), ids=lambda path: path.stem)
def test_files_of_earlier_formats_are_read(path, tmp_path):
    """Files that earlier versions wrote, with the scores and labels that the model gave then."""
    model, extra = mtclust.load(path, return_extra=True)
    np.testing.assert_allclose(model.decision_function(extra["rows"], tasks=extra["task"]), extra["scores"], atol=1e-12)
    np.testing.assert_array_equal(model.fit_task(extra["rows"]).labels_, extra["labels"])
    assert extra["settings"] == ("a", {1: None})
    assert len(model.labels_) == extra["n"]
    model.save(tmp_path / "again")
    assert_same(public(mtclust.load(tmp_path / "again")), public(model))


# -- reading what is no model, or no longer one ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    DSTC(3, kernel="linear", random_state=0, lambda1=0.1).fit(X[:12]).save(path)
    return path.read_bytes()


def load_bytes(data, tmp_path):
    (tmp_path / "m").write_bytes(data)
    return mtclust.load(tmp_path / "m")


def test_files_of_others_are_told_from_models(tmp_path):
    pickled = pickle.dumps({"a": 1})
    arrays = io.BytesIO()
    np.savez(arrays, a=np.arange(3))
    for data, reason in [
        (b"", "it is empty"),
        (pickled, "not a zip file"),
        (arrays.getvalue(), "zip without model.js"),
    ]:
        with pytest.raises(ModelFileError, match=f"is not a model saved by mtclust.*{reason}"):
            load_bytes(data, tmp_path)


def test_every_truncation_is_noticed(saved, tmp_path):
    lengths = [*range(0, 200), *range(200, len(saved), 97), *range(len(saved) - 60, len(saved))]
    for length in lengths:
        with pytest.raises(ModelFileError):
            load_bytes(saved[:length], tmp_path)
    print(f"{len(lengths)} truncated files")


def test_a_changed_byte_is_noticed_or_changes_nothing(saved, tmp_path):
    """Some bytes of a zip mean nothing here (times, attributes); all others must be noticed."""
    expected = public(load_bytes(saved, tmp_path))
    noticed = 0
    positions = np.random.default_rng(TIMES - 1).choice(len(saved), min(len(saved), 700 * TIMES), replace=False)
    for position in positions:
        damaged = bytearray(saved)
        damaged[position] ^= 1 << (position % 8)
        try:
            loaded = load_bytes(bytes(damaged), tmp_path)
        except ModelFileError:
            noticed += 1
        else:
            assert_same(public(loaded), expected)
    print(f"{len(positions)} files with a changed byte, {noticed} refused")
    assert noticed > 0.7 * len(positions)


def test_labels_in_another_order_are_noticed(saved, tmp_path):
    """Nothing but its checksum tells them from the labels of other rows."""
    shuffled = forged(saved, LABELS, np.random.default_rng(0).permutation)
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        checksums = json.loads(archive.read(MANIFEST))["checksums"]
    with pytest.raises(ModelFileError, match="its arrays are not those that were saved with it"):
        load_bytes(rewritten(shuffled, put(checksums, "checksums")), tmp_path)
    with pytest.raises(ModelFileError, match="'checksums' is missing"):
        load_bytes(rewritten(shuffled, lambda manifest: manifest.pop("checksums")), tmp_path)


def test_a_newer_format_is_named_with_the_version_that_wrote_it(saved, tmp_path):
    def newer(manifest):
        manifest.update(version=5, mtclust="9.9")

    with pytest.raises(ModelFileError, match=r"saved by mtclust 9.9 in format 5; this is mtclust .* formats 2 to 4"):
        load_bytes(rewritten(saved, newer), tmp_path)
    with pytest.raises(ModelFileError, match="is not a model saved by mtclust"):
        load_bytes(rewritten(saved, lambda manifest: manifest.update(format="other")), tmp_path)


def test_a_file_of_the_first_format_must_be_fitted_again(saved, tmp_path):
    with pytest.raises(ModelFileError, match=r"saved by mtclust 0.1.0 in format 1.*, or fit the model again"):
        load_bytes(rewritten(saved, lambda manifest: manifest.update(version=1, mtclust="0.1.0")), tmp_path)


def npy(array, shape=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array)
    return out.getvalue() if shape is None else out.getvalue().replace(str(array.shape).encode(), shape.encode(), 1)


class _Explosive:
    def __reduce__(self):
        return (pytest.fail, ("code from the file was executed",))


def array(name):
    return {"type": "array", "name": f"arrays/{name}.npy"}


def put(value, *keys):
    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


LABELS, KEPT = "arrays/labels_.npy", ("model", "kept")
STATE = (*KEPT, "fields")
HOSTILE = {
    "pickled array": (None, {LABELS: npy(np.array([_Explosive()], dtype=object))}, "Object arrays cannot be loaded"),
    "array larger than its bytes": (None, {LABELS: npy(np.zeros(3), "(9,)")}, "EOF"),
    "huge claimed shape": (None, {LABELS: npy(np.zeros(30), "(9999999999999,)")}, "Unable to allocate"),
    "negative shape": (None, {LABELS: npy(np.zeros(30), "(-3,)")}, "negative"),
    "structured array": (None, {LABELS: npy(np.zeros(3, "i4,f8"))}, "is an array of"),
    "other content": (None, {LABELS: npy(np.zeros(3))}, "labels_ is an array of float64"),
    "unknown class": (put("Popen", "model", "class"), None, "model of unknown class 'Popen'"),
    "no model": (put({"type": "dict", "items": []}, "model", "class"), None, "unhashable"),
    "unknown parameter": (put(1, "model", "parameters", "shell"), None, "shell"),
    "method replaced": (put(1, "model", "fitted", "predict"), None, "'predict' is no attribute of a fitted DSTC"),
    "private method replaced": (put(1, "model", "fitted", "_solve"), None, "'_solve' is no attribute"),
    "class replaced": (put(1, "model", "fitted", "__class__"), None, "'__class__' is no attribute"),
    "state replaced": (put("Stability", *KEPT, "name"), None, "unexpected keyword"),
    "state of an unknown class": (put("Popen", *KEPT, "name"), None, "a record of unknown class 'Popen'"),
    "model replaced": (put(1, "model", "decision"), None, "decision is 1, which is no"),
    "unknown field": (put(1, "model", "decision", "fields", "x"), None, "unexpected keyword argument 'x'"),
    "unknown type": (put({"type": "call", "name": "os.system"}, "extra"), None, "unknown type 'call'"),
    "no type": (put({"x": 1}, "extra"), None, "'type' is missing"),
    "object number": (put({"type": "number", "dtype": "O", "hex": "00" * 8}, "extra"), None, "number of type object"),
    "unhashable key": (put({"type": "dict", "items": [[[], 1]]}, "extra"), None, "unhashable"),
    "missing array": (put({"type": "array", "name": "arrays/999.npy"}, "extra"), None, "arrays/999.npy' is missing"),
    "manifest as array": (put({"type": "array", "name": "model.json"}, "extra"), None, "'model.json' is missing"),
    "wrong clusters": (put(2, "model", "fitted", "n_clusters_"), None, "labels_ holds values outside of 0 to 1"),
    "no array": (
        put({"type": "csr", "container": "csr_array", "shape": [1, 1], "data": 5, "indices": 5, "indptr": 5}, "extra"),
        None, "not subscriptable",
    ),
    "objects that are too few": (
        put({"type": "objects", "shape": [2], "items": [1]}, "extra"), None, r"shape \[2\] with 1 items",
    ),
    "tasks that overlap": (put(array("kept.labels"), *STATE, "offsets"), None, "rows are not those of 1 tasks"),
    "labels of other clusters": (
        put(array("kept.offsets"), *STATE, "labels"), None, "kept.labels (has the shape|holds values)",
    ),
    "sizes of other clusters": (
        put(array("kept.labels"), *STATE, "bounds", "fields", "lower"), None, "kept.bounds.lower has the shape",
    ),
    "rows that are too few": (put(array("cluster_sizes_"), *STATE, "rows"), None, "rows is an array of int64"),
    "lost attribute": (lambda manifest: manifest["model"]["fitted"].pop("labels_"), None, "labels_ is missing"),
    "lost state": (lambda manifest: manifest["model"]["kept"]["fields"].pop("labels"), None, "labels"),
}  # fmt: skip


def test_members_with_other_names_are_refused(saved, tmp_path):
    for name in ("../../evil.npy", "arrays/../evil.npy", "/etc/evil.npy", "arrays/evil.py"):
        with pytest.raises(ModelFileError, match="is no name of an array"):
            load_bytes(rewritten(saved, members={name: npy(np.zeros(3))}), tmp_path)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_and_execute_nothing(name, saved, tmp_path):
    change, members, message = HOSTILE[name]
    with pytest.raises(ModelFileError, match=f"is damaged and was not loaded: .*{message}"):
        load_bytes(rewritten(saved, change, members), tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "m"]


def test_a_manifest_that_is_no_json_is_refused(saved, tmp_path):
    with pytest.raises(ModelFileError, match="or it is damaged: its manifest holds NaN, which is no JSON"):
        load_bytes(rewritten(saved, put(float("nan"), "extra")), tmp_path)


def places(value, path=()):
    """Every place in a manifest."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


ODD = [
    None, True, -1, 10**30, 1.5, 1e308, ["x"], "", LABELS, [], {}, [[]], {"type": "array", "name": LABELS},
    {"type": "tuple", "items": []}, {"type": "range", "range": [0, 10**18, 1]}, {"type": "float", "value": "nan"},
    {"type": "objects", "shape": [0], "items": []},
]  # fmt: skip


def test_any_other_value_anywhere_in_the_manifest_is_refused_or_harmless(saved, tmp_path):
    """Refused with the one error there is, or a model that does everything."""
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        everywhere = list(places(json.loads(archive.read(MANIFEST))))
    rng = np.random.default_rng(TIMES - 1)
    refused = 0
    for k in rng.choice(len(everywhere), 150 * TIMES):
        try:
            model = load_bytes(rewritten(saved, put(ODD[rng.integers(len(ODD))], *everywhere[k])), tmp_path)
        except ModelFileError:
            refused += 1
            continue
        assert model.predict(X[:12]).shape == model.fit_task(X[:12]).labels_.shape == (12,)
        assert np.isfinite(model.predict_proba(X[:12])).all()
        model.save(tmp_path / "again")
    assert refused > 50 * TIMES


def test_compressed_and_doubled_members_are_refused(saved, tmp_path):
    bomb = rewritten(saved, members={LABELS: bytes(10**7)}, compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 10**5
    with pytest.raises(ModelFileError, match="members are compressed"):
        load_bytes(bomb, tmp_path)
    out = io.BytesIO(saved)
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(LABELS, npy(np.zeros(3)))
    with pytest.raises(ModelFileError, match="two members have the same name"):
        load_bytes(out.getvalue(), tmp_path)


def test_members_that_overlap_cannot_add_up_to_more_than_the_file(tmp_path):
    """A directory that names the same bytes a thousand times: small file, large sum."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(MANIFEST, "{}")
        archive.writestr("arrays/0.npy", bytes(10**5))
        same = archive.getinfo("arrays/0.npy")
        for i in range(1, 1000):
            copy = zipfile.ZipInfo(f"arrays/{i}.npy")
            copy.CRC, copy.file_size, copy.compress_size = same.CRC, same.file_size, same.compress_size
            copy.header_offset = same.header_offset
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
    with pytest.raises(ModelFileError, match="claim to be larger than the file"):
        load_bytes(out.getvalue(), tmp_path)


def test_a_deeply_nested_manifest_is_an_error_not_a_crash(saved, tmp_path):
    deep = b'{"format": "mtclust model", "version": 1, "extra": ' + b"[" * 10**5 + b"]" * 10**5 + b"}"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(MANIFEST, deep)
    with pytest.raises(ModelFileError):
        load_bytes(out.getvalue(), tmp_path)


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_a_sparse_matrix_with_indices_out_of_range_is_refused(part):
    matrix = sp.csr_matrix(np.eye(3))
    getattr(matrix, part)[1] = 10**6
    with pytest.raises(ValueError, match="ind"):
        through_json(matrix)
