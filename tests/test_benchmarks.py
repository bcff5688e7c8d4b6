"""The benchmarks run: each says what it does, and a small one is run to its table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = sorted(path.name for path in (ROOT / "benchmarks").glob("[a-z]*.py"))


def run(name, *arguments, **environment):
    command = [sys.executable, str(ROOT / "benchmarks" / name), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_explains_itself(name):
    result = run(name, "--help")
    assert result.returncode == 0, result.stderr
    assert f"benchmarks/{name}" in result.stdout


def test_reference_objective_on_one_draw(data_home, tmp_path):
    result = run("reference_objective.py", "--draws", "1", "--out", str(tmp_path), MTCLUST_DATA=data_home)
    assert result.returncode == 0, result.stderr
    rows = [line.split(",") for line in (tmp_path / "runs.csv").read_text().splitlines()]
    gaps = [float(row[rows[0].index("gap_percent")]) for row in rows[1:]]
    assert len(gaps) == 3
    assert max(gaps) < 2
    assert "| job |" in (tmp_path / "table.md").read_text()
