"""What the cutting-plane solver is told, and when its relaxed labels count as collapsed."""

import warnings

import numpy as np
import pytest

from mtclust.core.labels import label_codes
from mtclust.exceptions import DegenerateSolutionWarning
from mtclust.relaxation.cutting_plane import CuttingPlaneOptions, Relaxation, shrinkage, warn_if_collapsed


def relaxation(n_tied=0, scale=1.0, n=40, n_clusters=3, tie=0.0):
    """Labels whose codes are scaled, with some rows whose two highest scores differ by ``tie``."""
    codes = scale * label_codes(np.arange(n) % n_clusters, n_clusters)
    scores = np.tile(np.linspace(0.9, -0.9, n_clusters), (n, 1))
    if n_clusters > 1:
        scores[:n_tied, 1] = scores[:n_tied, 0] - tie
    return Relaxation(codes, [], np.zeros(n, dtype=np.int64), scores, 1.0, 0.5, 2)


def test_smallest_options_are_allowed():
    given = {"max_cuts": 0, "max_level_steps": 1, "gap_tol": 0, "level_tol": 0.0}
    options = CuttingPlaneOptions.from_dict(given)
    assert {key: getattr(options, key) for key in given} == given
    assert CuttingPlaneOptions.from_dict(None) == CuttingPlaneOptions()


@pytest.mark.parametrize(
    "given",
    [{"max_level_steps": 0}, {"max_cuts": -1}, {"gap_tol": -1e-9}, {"zero_tol": -1}, {"level_tol": np.nan}],
)
def test_smaller_ones_are_not(given):
    (key,) = given
    with pytest.raises(ValueError, match=key):
        CuttingPlaneOptions.from_dict(given)


def test_few_cuts_are_the_default():
    assert CuttingPlaneOptions() == CuttingPlaneOptions("k-means", 25, 1e-4, 1e-4, "quadratic", 1e-3, 300)


def test_shrinkage_is_the_share_of_the_norm_of_labels():
    for n_clusters in (1, 2, 5):
        assert shrinkage(0.3 * label_codes(np.arange(20) % n_clusters, n_clusters)) == pytest.approx(0.3)


@pytest.mark.parametrize(("tie", "n_ties"), [(0.0, 7), (9e-7, 7), (1.1e-6, 0), (0.5, 0)])
def test_rows_are_tied_if_their_two_highest_scores_are_the_same(tie, n_ties):
    assert relaxation(n_tied=7, tie=tie).n_ties == n_ties


def test_two_clusters_can_tie_and_one_cannot():
    assert relaxation(n_tied=7, n_clusters=2).n_ties == 7
    assert relaxation(n_clusters=1).n_ties == 0


@pytest.mark.parametrize(
    ("given", "collapsed"),
    [
        ({}, False),
        ({"scale": 0.21}, False),
        ({"scale": 0.19}, True),
        ({"n_tied": 2}, False),  # a twentieth of the rows
        ({"n_tied": 3}, True),
        ({"n_clusters": 2, "scale": 0.0}, True),
        ({"n_clusters": 1, "scale": 0.0}, False),
    ],
)
def test_labels_are_collapsed_if_nearly_zero_or_tied_in_many_rows(given, collapsed):
    assert relaxation(**given).collapsed == collapsed


@pytest.mark.parametrize(("init", "named"), [("random", "'random'"), ([0, 1], "the given labels")])
def test_the_warning_says_how_far_and_from_where(init, named):
    with pytest.warns(DegenerateSolutionWarning) as caught:
        warn_if_collapsed(relaxation(n_tied=3), init)
    message = str(caught[0].message)
    for part in ("after 2 cuts", "|Ỹ| = 1 |Y|", "3 of 40 rows", "objective is 1.", f"({named})"):
        assert part in message
    assert caught[0].filename == __file__


def test_labels_that_are_not_collapsed_do_not_warn():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_collapsed(relaxation(), "random")
    assert caught == []
