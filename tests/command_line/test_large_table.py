"""A table of 60 000 rows, for which no kernel matrix could be held (29 GB)."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from table_helpers import run_cli

from mtclust.metrics import macro_nmi


@pytest.mark.skipif(find_spec("mtclust.rows") is None, reason="this many rows need the primal form of the solver")
def test_sixty_thousand_rows(tmp_path, capsys):
    rng = np.random.default_rng(0)
    n = 60_000
    truth = rng.integers(0, 3, n)
    table = pd.DataFrame((rng.normal(size=(n, 3)) + 5 * np.eye(3)[truth]).round(3), columns=["a", "b", "c"])
    table["shop"] = rng.integers(0, 4, n)
    table.to_csv(tmp_path / "big.csv", index=False)
    out = tmp_path / "out"
    command = [
        "fit",
        tmp_path / "big.csv",
        "--task-column",
        "shop",
        "--clusters",
        3,
        "--sizes",
        "balanced",
        "--out",
        out,
    ]
    assert run_cli(*command) == 0
    assert "3 clusters with DMTRC" in capsys.readouterr().out
    labels = pd.read_csv(out / "labels.csv")
    assert len(labels) == n
    assert macro_nmi(truth, labels["cluster"], labels["task"]) > 0.95
    assert (out / "report.html").stat().st_size < 2_000_000
    assert "rows, drawn at random" in (out / "report.html").read_text(encoding="utf-8")
