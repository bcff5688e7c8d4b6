"""What cannot be used is refused with an error that names it, before anything is stored."""

import warnings

import pytest
from property_cases import holds
from property_mistakes import mistakes


@holds("refused", mistake=mistakes())
def test_one_wrong_thing_is_named_and_nothing_is_stored(mistake):
    estimator, given, what, words = mistake
    before = repr(estimator.get_params())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises((ValueError, TypeError)) as caught:
            estimator.fit(**given)
    message = str(caught.value)
    assert any(word in message for word in words), f"{what} is not named: {message}"
    assert len(message) > 20
    assert not hasattr(estimator, "labels_")
    assert repr(estimator.get_params()) == before
