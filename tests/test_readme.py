"""The README's example prints what it says, and its figures are those of the committed results."""

import contextlib
import csv
import io
import json
import re
from collections import defaultdict
from pathlib import Path

from mtclust.reference import REFERENCE_METHODS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_the_output_shown():
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, flags=re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown


def _means(table: str, score: str) -> dict[tuple[str, str], float]:
    """Mean of a score over draws, by method and job; of reference methods at their default setting."""
    values = defaultdict(list)
    defaults = (
        {method.label: dict(method.default) for method in REFERENCE_METHODS.values()} if "reference" in table else {}
    )
    with open(ROOT / "results" / table / "runs.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["method"] not in defaults or json.loads(row["setting"]) == defaults[row["method"]]:
                values[row["method"], row["job"]].append(float(row[score]))
    return {key: sum(scores) / len(scores) for key, scores in values.items()}


def test_our_rows_of_the_table_are_the_committed_results():
    means = _means("pendigits", "nmi")
    for start, method in (("DSTC: each task alone", "DSTC_r"), (r"\*\*DMTRC: all tasks", "DMTRC_r")):
        line = re.search(rf"^\| {start}.*$", README, flags=re.MULTILINE).group()
        shown = re.findall(r"\.\d\d", line)
        assert shown == [f"{means[method, job]:.2f}"[1:] for job in "123"]


def test_the_competitors_of_the_table_are_the_committed_results():
    means = _means("reference_methods", "nmi_lowest")
    rows = {"k-means on each task": "KM", "normalised cut": "NC", "k-means pooled": "ALL KM"}
    rows["best multitask competitor"] = "LSKMTC"
    for start, method in rows.items():
        shown = re.findall(r"\.\d\d", re.search(rf"^\| {start}.*$", README, flags=re.MULTILINE).group())
        assert shown == [f"{means[REFERENCE_METHODS[method].label, job]:.2f}"[1:] for job in "123"]


def test_files_that_the_readme_links_to_exist():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
