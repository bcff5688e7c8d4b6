"""``selection_``: fields by name and by key."""

import copy
import pickle

import numpy as np
import pytest

from mtclust.selection import ClusterNumberChoice, CouplingDecision, Selection, Tried

CANDIDATE = {"name": "k-means of aligned tasks", "score": 0.6, "separation": 0.5, "frame": "aligned"}
ENTRIES = {
    "kernel": "linear", "criterion": "J", "center": "task", "lambda1": 0.1, "lambda2": 0.2, "form": "dual",
    "sizes": "free",
    "coupling": {"decision": "full", "reason": "they agree", "statistic": 0.0},
    "n_clusters": {"chosen": 3, "reason": "3 separate best", "gaps": {2: 0.1, 3: 0.4}},
    "candidates": [CANDIDATE], "task_similarity": np.eye(2), "width": None,
}  # fmt: skip


def test_parts_become_records_and_plain_dictionaries_again():
    found = Selection.of(ENTRIES)
    assert isinstance(found.coupling, CouplingDecision)
    assert isinstance(found.n_clusters, ClusterNumberChoice)
    assert isinstance(found.candidates[0], Tried)
    plain = found.to_dict()
    np.testing.assert_array_equal(plain.pop("task_similarity"), ENTRIES["task_similarity"])
    assert plain == {name: value for name, value in ENTRIES.items() if name not in ("task_similarity", "width")}


def test_what_does_not_apply_is_none_and_no_key():
    found = Selection.of(ENTRIES)
    assert found.width is None
    assert found["width"] is None
    assert "width" not in found
    assert found.get("width", 7) == 7
    assert set(found) == set(ENTRIES) - {"width"}
    assert len(found) == len(ENTRIES) - 1
    assert found["coupling"]["reason"] == found.coupling.reason == "they agree"


def test_an_unknown_key_is_an_error_that_names_the_others():
    found = Selection.of(ENTRIES)
    assert "lamda1" not in found
    assert found.get("lamda1") is None
    with pytest.raises(KeyError, match="'lamda1' is no field of Selection; there are kernel, criterion"):
        found["lamda1"]
    assert Selection.of(ENTRIES | {"lamda1": 3}).to_dict().keys() == found.to_dict().keys(), "of another version"


@pytest.mark.parametrize("wrong", [range(10**18), "kernel", 3, [("kernel", "linear")]])
def test_what_is_no_dictionary_is_refused_without_being_walked_through(wrong):
    with pytest.raises(ValueError, match=f"CouplingDecision is made of a dictionary, not of a {type(wrong).__name__}"):
        Selection.of(ENTRIES | {"coupling": wrong})
    with pytest.raises(ValueError, match="Tried is made of a dictionary"):
        Selection.of(ENTRIES | {"candidates": [wrong]})


def test_a_table_of_sizes_that_the_user_gave_stays_one():
    sizes = {"a": [3, 4], "b": [2, 5]}
    assert Selection.of(ENTRIES | {"sizes": sizes}).sizes is sizes


def test_a_record_cannot_be_changed_but_copied():
    found = Selection.of(ENTRIES)
    with pytest.raises(AttributeError):
        found.kernel = "rbf"
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other.coupling == found.coupling
        assert repr(other) == repr(found)
