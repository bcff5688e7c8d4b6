"""The README's example prints what it says, and its figures are those of the committed results."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtclust.app.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def tool(monkeypatch):
    """The tool that runs the README's lines with a wheel installed: it must find the same ones."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import try_wheel

    return try_wheel


def test_the_example_prints_the_output_shown(tool):
    code, shown = tool.example(README)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown


def test_the_example_with_a_table_runs(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = tool.table_example(README)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"hospital": np.repeat(["a", "b"], 20), "age": rng.normal(size=40) + np.tile([0, 9], 20)})
    quick = code.replace('task="hospital"', 'task="hospital", n_clusters=2, kernel="linear"')
    names = {"frame": frame, "new_rows": frame[:5]}
    exec(compile(quick, "README.md", "exec"), names)
    assert names["found"].n_clusters == 2
    assert (tmp_path / "report.html").exists()


def test_the_command_runs(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = tool.command(README)
    tool.write_table(command, tmp_path)
    assert main([*command, "--no-stability", "--kernel", "linear"]) == 0
    assert (tmp_path / command[command.index("--out") + 1] / "report.html").exists()


def test_the_means_over_tables_are_those_of_the_committed_runs():
    page = (ROOT / "results/tables/table.md").read_text(encoding="utf-8")
    means = dict(re.findall(r"^\| ([^|]+?) \|(.*)\|$", page[: page.index("## Set by set")], flags=re.MULTILINE))
    rows = {
        "k-means: all rows": "k-means, pooled", "k-means: each task": "k-means, per task",
        "Gaussian mixture, all rows": "GMM full, pooled", "Ward, all rows": "Ward, pooled",
        "spectral, all rows": "spectral, pooled",
        "DSTC: each task": "DSTC", r"\*\*DMTRC: all tasks": "DMTRC",
    }  # fmt: skip
    for start, method in rows.items():
        shown = re.findall(r"\.\d\d\d", re.search(rf"^\| {start}.*$", README, flags=re.MULTILINE).group())
        assert shown == [number[1:] for number in re.findall(r"\d\.\d\d\d", means[method].split("|")[-1])]
    several = page[page.index("## Sets run once at the end") :].split("### Several tasks")[1].split("### ")[0]
    sets = set(re.findall(r"^\| (\w+) \|", several, flags=re.MULTILINE)) - {"set", "mean"}
    assert f"on {len(sets)} real and synthetic sets" in README


def test_files_that_the_readme_links_to_exist():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
