"""The paper's names."""

import pytest
from sklearn.cluster import KMeans

from paper.reference import LSKMTC, MBC, REFERENCE_METHODS, KernelKMeans, Pooled


def test_names_of_the_paper():
    assert list(REFERENCE_METHODS) == ["KM", "KKM", "NC", "ALL KM", "ALL KKM", "ALL NC", "LSSMTC", "LSKMTC", "MBC"]
    assert {name for name, method in REFERENCE_METHODS.items() if method.kind == "pooled"} == {
        "ALL KM",
        "ALL KKM",
        "ALL NC",
    }


def test_reconstructions_say_so_everywhere():
    rebuilt = {name for name, method in REFERENCE_METHODS.items() if method.reconstruction}
    assert rebuilt == {"LSKMTC", "MBC"}
    for name, estimator in {"LSKMTC": LSKMTC, "MBC": MBC}.items():
        assert REFERENCE_METHODS[name].label == f"{name} (reconstruction)"
        assert REFERENCE_METHODS[name].unknown
        assert "A reconstruction." in estimator.__doc__
        assert "What is not known" in estimator.__doc__


@pytest.mark.parametrize("method", REFERENCE_METHODS.values(), ids=list(REFERENCE_METHODS))
def test_grid_contains_the_default(method):
    assert dict(method.default) in method.settings()
    for setting in method.settings():
        method.build(3, **setting)


def test_build_passes_what_is_given():
    model = REFERENCE_METHODS["ALL KKM"].build(4, n_init=3, random_state=1, width=2.0)
    assert isinstance(model, Pooled)
    assert isinstance(model.estimator, KernelKMeans)
    assert (model.estimator.n_clusters, model.estimator.n_init, model.estimator.width) == (4, 3, 2.0)
    assert isinstance(REFERENCE_METHODS["ALL KM"].build(4).estimator, KMeans)


def test_unknown_hyper_parameters():
    with pytest.raises(ValueError, match="KKM has no hyper-parameter strength; it has: width"):
        REFERENCE_METHODS["KKM"].build(3, strength=1.0)
    with pytest.raises(ValueError, match="KM has no hyper-parameter width; it has: none"):
        REFERENCE_METHODS["KM"].build(3, width=1.0)
