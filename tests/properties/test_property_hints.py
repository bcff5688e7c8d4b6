"""Known rows, pairs and counts of rows together: all are kept, whatever the table and the method."""

import io
import pickle
import warnings

import numpy as np
from hypothesis import strategies as st
from property_cases import holds, timed
from property_problems import KINDS, rows_of

from mtclust import DMTFC, DMTRC, DSTC

METHODS = {"DMTRC": DMTRC, "DMTFC": DMTFC, "DSTC": DSTC}


@st.composite
def hinted(draw):
    """A table with hints that agree with labels drawn at random, so that all of them can be kept."""
    counts = draw(st.lists(st.integers(6, 30), min_size=1, max_size=3))
    seed, C = draw(st.integers(0, 2**31)), draw(st.integers(2, 3))
    X, tasks = rows_of(draw(st.sampled_from(KINDS)), counts, draw(st.integers(1, 3)), seed)
    rng = np.random.default_rng(seed)
    n, truth = len(X), rng.integers(C, size=len(X))
    X = X * 10.0 ** draw(st.integers(-6, 6))
    given = {"X": X, "tasks": tasks}
    pairs = rng.permutation(n)[: 2 * draw(st.integers(0, n // 4))].reshape(-1, 2)
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    given["must_link"], given["cannot_link"] = pairs[same], pairs[~same].tolist()
    if draw(st.booleans()):
        given["known"] = np.where(rng.random(n) < 0.2, truth, -1)
    if draw(st.booleans()):
        weights = rng.integers(0, 4, size=n)
        weights[pairs.ravel()] += 1
        weights[np.unique(tasks, return_index=True)[1]] += 1
        given["sample_weight"] = weights
    options = {"kernel": draw(st.sampled_from(["auto", "linear", "rbf"])), "n_init": 2, "random_state": 0}
    return METHODS[draw(st.sampled_from(sorted(METHODS)))](C, **options), given


@holds("hints", case=hinted())
def test_hints_are_kept(case):
    model, given = case
    with warnings.catch_warnings(), timed():
        warnings.simplefilter("ignore")
        model.fit(**given)
    labels, known = model.labels_, given.get("known")
    assert labels.shape == (len(given["X"]),)
    if known is not None:
        np.testing.assert_array_equal(labels[known >= 0], known[known >= 0])
    for argument, same in (("must_link", True), ("cannot_link", False)):
        for first, second in np.asarray(given[argument]).reshape(-1, 2).astype(int):
            assert (labels[first] == labels[second]) == same
    assert model.cluster_sizes_.sum() == len(labels)
    file = io.BytesIO()
    pickle.dump(model, file)
    np.testing.assert_array_equal(pickle.loads(file.getvalue()).labels_, labels)
