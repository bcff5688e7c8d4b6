"""Every public name is in the reference, and documented with an example; pytest runs the examples as doctests."""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from numpydoc.docscrape import NumpyDocString

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: modules whose public names are the public interface; ``features`` and ``labels`` show only what the reference lists
PACKAGES = (
    "mtclust",
    *(f"mtclust.{name}" for name in ("datasets", "plotting", "selection")),
)
MODULES = ("mtclust.exceptions", "mtclust.metrics")


def _listed(page: str) -> list[str]:
    """Names in the autosummary tables of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [f"mtclust.{name}" for name in re.findall(r"^   ([A-Za-z_][\w.]*)$", text, flags=re.MULTILINE)]


def _find(name: str) -> Any:
    """The object of a dotted name."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name} cannot be imported")


def _public(module: ModuleType) -> list[str]:
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [name for name in getattr(module, "__all__", own) if not name.startswith("_") and name[0].isalpha()]


PUBLIC = [name for name in _listed("api.rst") if not isinstance(_find(name), ModuleType)]
METHODS = [
    f"{name}.{method}"
    for name in PUBLIC
    if inspect.isclass(_find(name))
    for method, function in inspect.getmembers(_find(name), inspect.isfunction)
    if not method.startswith("_") and function.__module__.startswith("mtclust")
]


@pytest.mark.parametrize("module", [*PACKAGES, *MODULES])
def test_the_reference_lists_every_public_name(module: str):
    exported = [f"{module}.{name}" for name in _public(importlib.import_module(module))]
    exported = [name for name in exported if not name.endswith("Metric")]  # a type of argument
    assert exported, "no public names found"
    assert not set(exported) - set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_a_docstring_with_a_running_example(name: str):
    found = _find(name)
    if not (inspect.isclass(found) or inspect.isfunction(found)):  # a constant: its module shows it
        module = name.rsplit(".", 1)[0]
        text = importlib.import_module(module).__doc__ or ""
        assert name.rsplit(".", 1)[1] in text
        assert ">>>" in text
        return
    documentation = NumpyDocString(inspect.getdoc(found) or "")
    assert documentation["Summary"]
    assert any(line.lstrip().startswith(">>>") for line in documentation["Examples"])


@pytest.mark.parametrize("name", METHODS)
def test_public_methods_say_what_they_do(name: str):
    assert NumpyDocString(inspect.getdoc(_find(name)) or "")["Summary"]


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_names_that_pages_link_to_are_in_the_reference(page: str):
    """A link to a name that has no entry would silently be plain text."""
    text = (DOCS / page).read_text(encoding="utf-8")
    listed = {*_listed("api.rst"), *_listed("api_core.rst")}
    for role, name in re.findall(r"\{(func|class|meth|mod)\}`~?([\w.]+)`", text):
        _find(name)
        owner = name.rsplit(".", 1)[0] if role == "meth" else name
        assert owner in listed, f"{name} has no entry"


def test_every_name_of_the_core_reference_is_there():
    for name in _listed("api_core.rst"):
        _find(name)


@pytest.mark.parametrize("name", ["DMTRC", "DMTFC", "DSTC"])
def test_every_parameter_of_an_estimator_is_described_in_full(name: str):
    """Texts that the estimators share stand in one docstring and are put into the others."""
    found = _find(f"mtclust.{name}")
    documentation = NumpyDocString(inspect.getdoc(found) or "")
    described = [single for entry in documentation["Parameters"] for single in entry.name.split(", ")]
    assert sorted(described) == sorted(inspect.signature(found).parameters)
    assert all(entry.desc for entry in documentation["Parameters"])
    assert {"labels_", "selection_", "cluster_sizes_"} <= {entry.name for entry in documentation["Attributes"]}
