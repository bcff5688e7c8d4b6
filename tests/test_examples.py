"""The quick scripts of the gallery run without warnings; ``make docs`` runs all of them."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
QUICK = ("plot_new_task.py", "plot_text_by_domain.py")


@pytest.mark.parametrize("script", QUICK)
def test_example_runs_and_draws(script, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    runpy.run_path(script)
    assert pyplot.get_fignums()
    pyplot.close("all")


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_the_gallery_shows_every_example_in_a_chosen_place(script):
    assert script.startswith("plot_"), "the gallery runs only scripts of that name"
    assert f'"{script}"' in (EXAMPLES.parent / "docs" / "conf.py").read_text(encoding="utf-8")
