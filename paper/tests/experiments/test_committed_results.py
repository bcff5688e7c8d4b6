"""The committed results: complete, and the page in the documentation says what the tables say."""

import re
from pathlib import Path

import numpy as np
import pytest

from mtclust import __version__
from paper.experiments import EXPERIMENTS
from paper.experiments.claims import judge_claims, verdict_of
from paper.experiments.driver import read_frame
from paper.experiments.printed import LABELS, ONE_CUT, chosen_settings
from paper.experiments.protocols import REFERENCES, by_draw, display_name, with_names, without_labels

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results" / "reproduce"
PAGE = (RESULTS / "claims.md").read_text(encoding="utf-8")


def test_the_page_has_the_verdicts_of_the_tables():
    judged = judge_claims({name: read_frame(RESULTS, name) for name in EXPERIMENTS})
    expected = [(claim.number, verdict_of(cases)) for claims in judged.values() for claim, cases in claims]
    shown = re.findall(r"^\| ([A-Z]\d+) \|.*\| \*\*([a-z ]+)\*\* \|$", PAGE, flags=re.MULTILINE)
    assert sorted(shown) == sorted(expected)


def test_every_figure_and_table_of_the_paper_has_its_counterpart():
    table = re.findall(r"^\| Fig\. (\d+): .*\| `(\w+/figures/\w+\.png)` \|$", PAGE, flags=re.MULTILINE)
    assert [int(number) for number, _ in table] == list(range(1, 18))
    assert "Table 1: Task definition on the 20-newsgroups dataset." in PAGE
    shown = re.findall(r"^!\[.*\]\((.*)\)$", PAGE, flags=re.MULTILINE)
    assert {path for _, path in table} <= set(shown)
    assert all((RESULTS / path).exists() for path in shown)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_rows_are_in_order_and_none_failed(name):
    frame = read_frame(RESULTS, name)
    assert frame["error"].eq("").all()
    keys = frame[["dataset", "draw", "seed", "method"]].apply(tuple, axis=1).tolist()
    assert keys == sorted(keys)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_page_shows_the_rows_of_one_version_and_says_which(name):
    (version,) = read_frame(RESULTS, name)["version"].unique()
    page = (RESULTS / name / "page.md").read_text(encoding="utf-8")
    assert f"Rows of mtclust {version}" in page
    assert ("not of this version" in page) == (version != __version__)


def test_the_table_in_the_readme_is_that_of_the_rows():
    """The row of every method, in the order of the columns: data set, and kernel of our models."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    columns = [("pendigits", f"Job {job}", "r") for job in (1, 2, 3)]
    columns += [("newsgroups", "5 %, PCA", "l"), ("newsgroups", "10 %, PCA", "l"), ("sentiment", "50 %, PCA", "l")]
    named = {name: with_names(read_frame(RESULTS, name)) for name in ("pendigits", "newsgroups", "sentiment")}
    printed = chosen_settings(named["pendigits"])
    chosen = {"with labels": printed[LABELS], "without labels": printed[ONE_CUT]}

    def means(name):
        return [by_draw(without_labels(named[e]), d, name.format(kernel)).mean() for e, d, kernel in columns]

    expected = {
        "k-means: each task alone": means("KM"),
        "best of the nine": np.nanmax([means(display_name(method)) for method in REFERENCES], axis=0),
        "DSTC: each task alone": means("DSTC_{}"),
        "DMTRC: all tasks together": means("DMTRC_{}"),
    }
    for how, rows in chosen.items():
        expected[f"setting chosen {how}"] = [
            by_draw(rows, f"Job {j}", "DMTRC_r from k-means").mean() for j in (1, 2, 3)
        ]
    table = readme[readme.index("| | pendigits") :]
    for start, values in expected.items():
        (line,) = re.findall(rf"^\| .*{start}.*$", table, flags=re.MULTILINE)
        assert re.findall(r"\.\d\d\d", line) == [f"{value:.3f}"[1:] for value in values], start


def test_pendigits_has_thirty_draws_and_the_others_five():
    for name in EXPERIMENTS:
        assert read_frame(RESULTS, name)["draw"].nunique() >= (30 if name == "pendigits" else 5)
