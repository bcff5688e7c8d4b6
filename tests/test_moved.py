"""Public names that moved are still found at their old places, with a warning that names the new one."""

import importlib

import pytest

OLD_AND_NEW = [
    (f"mtclust.{room}", f"mtclust.paper.{room}", name)
    for room in ("reference", "datasets")
    for name in importlib.import_module(f"mtclust.paper.{room}").__all__
]


@pytest.mark.parametrize(("old", "new", "name"), OLD_AND_NEW)
def test_a_name_at_its_old_place_is_the_one_at_its_new_place(old, new, name):
    with pytest.warns(FutureWarning, match=rf"{old}\.{name} is {new}\.{name} now; the old place goes in version 1\.0"):
        found = getattr(importlib.import_module(old), name)
    assert found is getattr(importlib.import_module(new), name)


@pytest.mark.parametrize("module", ["mtclust.reference", "mtclust.datasets"])
def test_an_old_place_does_not_give_what_was_never_there(module):
    with pytest.raises(AttributeError, match=rf"module '{module}' has no attribute 'no_such_name'"):
        importlib.import_module(module).no_such_name  # noqa: B018
