"""The README's example prints what it says, and its figures are those of the committed results."""

import contextlib
import csv
import io
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_the_output_shown():
    code, shown = re.search(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", README, flags=re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown


def test_the_example_with_a_table_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(import mtclust\n.*?)```", README, flags=re.DOTALL).group(1)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"hospital": np.repeat(["a", "b"], 20), "age": rng.normal(size=40) + np.tile([0, 9], 20)})
    quick = code.replace('task="hospital"', 'task="hospital", n_clusters=2, kernel="linear"')
    names = {"frame": frame, "new_rows": frame[:5]}
    exec(compile(quick, "README.md", "exec"), names)
    assert names["found"].n_clusters == 2
    assert (tmp_path / "report.html").exists()


def _means() -> dict[tuple[str, str, str], float]:
    """Mean NMI without labels over draws, by method, kernel and job."""
    values = defaultdict(list)
    with open(ROOT / "results/reproduce/pendigits/runs.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["protocol"] == "no labels":
                values[row["method"], row["kernel"], row["dataset"]].append(float(row["nmi"]))
    return {key: sum(scores) / len(scores) for key, scores in values.items()}


def test_the_table_shows_the_committed_results():
    means = _means()
    rows = {
        "k-means on each task": ("KM", ""),
        "normalised cut": ("NC", ""),
        "k-means pooled": ("ALL KM", ""),
        "best multitask competitor": ("LSKMTC", ""),
        "DSTC: each task alone": ("DSTC", "rbf"),
        r"\*\*DMTRC: all tasks": ("DMTRC auto", "rbf"),
    }
    for start, (method, kernel) in rows.items():
        shown = re.findall(r"\.\d\d", re.search(rf"^\| {start}.*$", README, flags=re.MULTILINE).group())
        assert shown == [f"{means[method, kernel, f'Job {job}']:.2f}"[1:] for job in "123"]


def test_no_multitask_competitor_is_better_than_the_one_shown():
    means = _means()
    for job in "123":
        best = max(means[method, "", f"Job {job}"] for method in ("LSSMTC", "LSKMTC", "MBC"))
        assert best == means["LSKMTC", "", f"Job {job}"]


def test_files_that_the_readme_links_to_exist():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
