"""Which candidate is chosen, where a wrong one could look good."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from mtclust import DMTRC, DSTC
from mtclust.metrics import macro_nmi


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.UncoupledWarning")
@pytest.mark.parametrize("seed", range(4))
def test_batches_are_no_clusters(seed):
    """A few rows of shifted tasks in many columns: as many batches as clusters, and the batches further apart."""
    rng = np.random.default_rng(seed)
    centres, shifts = 1.3 * rng.normal(size=(5, 20)), 3.0 * rng.normal(size=(5, 20))
    y, tasks = np.tile(np.arange(5), 30), np.repeat(np.arange(5), 30)
    X = centres[y] + shifts[tasks] + rng.normal(size=(150, 20))
    model = DMTRC(5).fit(X, tasks=tasks)
    assert np.all(np.count_nonzero(model.cluster_sizes_, axis=1) > 1)
    assert macro_nmi(y, model.labels_, tasks) > 0.6


def test_clusters_that_touch_but_have_shapes_are_found_from_a_mixture():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = DSTC(3).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.85  # k-means: 0.62
    assert "from a Gaussian mixture" in model.selection_["reason"]


def test_ids_are_those_of_one_frame_where_both_find_the_same_clusters():
    """Shares that change move the centres of tasks: clusters are found around them, but may swap names."""
    rng = np.random.default_rng(0)
    shares = [(0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)]
    y = np.concatenate([rng.choice(3, 150, p=share) for share in shares])
    X = 6.0 * np.eye(5)[y] + rng.normal(size=(450, 5))
    model = DMTRC(3).fit(X, tasks=np.repeat([0, 1, 2], 150))
    assert adjusted_rand_score(y, model.labels_) > 0.98
