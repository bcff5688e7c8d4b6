"""PerTask and Pooled around scikit-learn's clusterers."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.mixture import GaussianMixture

from mtclust.metrics import macro_nmi
from paper.reference import KernelKMeans, PerTask, Pooled
from paper.reference.base import own_objective


def test_per_task_is_the_clusterer_on_each_task(noise):
    X, tasks = noise
    order = np.random.default_rng(0).permutation(len(X))
    X, tasks = X[order], tasks[order]
    model = PerTask(KMeans(3, n_init=2, random_state=0)).fit(X, tasks=tasks)
    inertia = 0.0
    for task in np.unique(tasks):
        alone = KMeans(3, n_init=2, random_state=0).fit(X[tasks == task])
        np.testing.assert_array_equal(model.labels_[tasks == task], alone.labels_)
        np.testing.assert_array_equal(model.estimators_[task].cluster_centers_, alone.cluster_centers_)
        inertia += alone.inertia_
    assert model.objective_ == pytest.approx(inertia)
    assert model.n_iter_ >= 1


def test_pooled_is_the_clusterer_on_all_rows(noise):
    X, tasks = noise
    model = Pooled(KMeans(3, n_init=2, random_state=0)).fit(X, tasks=tasks)
    alone = KMeans(3, n_init=2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    assert model.objective_ == alone.inertia_
    assert model.tasks_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("wrapper", [PerTask, Pooled])
@pytest.mark.parametrize(
    "clusterer", [GaussianMixture(4, random_state=0), AgglomerativeClustering(4), KernelKMeans(4, random_state=0)]
)
def test_any_clusterer_can_be_wrapped(wrapper, clusterer, separated):
    X, classes, tasks = separated
    assert macro_nmi(classes, wrapper(clusterer).fit_predict(X, tasks=tasks), tasks) > 0.95


def test_own_objective_of_different_clusterers(noise):
    X, tasks = noise
    mixture = GaussianMixture(2, random_state=0).fit(X)
    assert own_objective(mixture) == -mixture.lower_bound_
    assert np.isnan(PerTask(DBSCAN()).fit(X, tasks=tasks).objective_)
    assert PerTask(DBSCAN()).fit(X, tasks=tasks).n_iter_ == 0


def test_parameters_of_the_clusterer_are_reached(noise):
    X, tasks = noise
    model = PerTask(KMeans(n_init=1, random_state=0)).set_params(estimator__n_clusters=2)
    assert set(model.fit_predict(X, tasks=tasks).tolist()) == {0, 1}
    assert not hasattr(model.estimator, "labels_")  # the given clusterer is copied, not fitted


def test_sparse_rows_only_where_the_clusterer_takes_them(noise):
    X, tasks = noise
    sparse = sp.csr_array(X)
    kmeans = KMeans(3, n_init=1, random_state=0)
    np.testing.assert_array_equal(
        PerTask(kmeans).fit_predict(sparse, tasks=tasks), PerTask(kmeans).fit_predict(X, tasks=tasks)
    )
    with pytest.raises(TypeError, match="dense data is required"):
        PerTask(GaussianMixture(2)).fit(sparse, tasks=tasks)


def test_an_error_of_the_clusterer_names_the_task(noise):
    X, _ = noise
    with pytest.raises(ValueError, match=r"task 'b' \(2 rows\): n_samples=2 should be >= n_clusters=3"):
        PerTask(KMeans(3, n_init=1)).fit(X, tasks=np.repeat(["a", "b"], [88, 2]))
