"""The demonstration: a real table that comes with scikit-learn, from a CSV file to a report. Nothing is downloaded."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from mtclust.util.system import require

#: options of the command beside files and columns: pixels share a scale, and sheets ask for digits equally often
OPTIONS = ("--clusters", "10", "--sizes", "balanced", "--scale", "none")
#: first images of the sheets: every sheet asks for the same 130 digits, so that one begins where these begin anew
SHEETS = (0, 130, 256, 386, 516, 646, 776, 905, 1029, 1157, 1287, 1415, 1545, 1667)


def add_parser(commands: Any) -> None:
    what = "cluster real handwriting and compare with k-means; nothing is downloaded"
    parser, place = commands.add_parser("demo", help=what), Path("mtclust-demo")
    parser.add_argument("--out", type=Path, metavar="DIR", default=place, help="directory for table and results")
    parser.set_defaults(run=run)


def handwriting() -> Any:
    """1797 handwritten digits on 14 sheets: the sheet, the digit, and 64 pixels of every image."""
    import numpy as np
    from sklearn.datasets import load_digits

    pandas = require("pandas", "cli")
    images = load_digits()
    names = [f"pixel_{row}_{column}" for row in range(1, 9) for column in range(1, 9)]
    frame = pandas.DataFrame(images.data.astype(int), columns=names)
    frame.insert(0, "digit", images.target)
    sheets = np.searchsorted(SHEETS, np.arange(len(frame)), side="right")
    frame.insert(0, "sheet", [f"sheet {number}" for number in sheets])
    return frame


def run(options: argparse.Namespace) -> int:
    """Write the table, run ``mtclust fit`` on it, and compare its clusters with those of k-means."""
    from mtclust.app.cli import main
    from mtclust.app.commands import written_to
    from mtclust.persistence.atomic import atomic_write

    out: Path = options.out
    require("pandas", "cli")
    require("jinja2", "report")
    frame = handwriting()
    table, result = out / "handwriting.csv", out / "result"
    with written_to(out):
        out.mkdir(parents=True, exist_ok=True)
        with atomic_write(table) as stream:
            stream.write(frame.to_csv(index=False).encode())
    command = ["fit", str(table), "--task-column", "sheet", "--key", "digit", "--show-keys", *OPTIONS]
    command += ["--out", str(result), "--overwrite"]
    print(
        f"{len(frame):,} handwritten digits of 8 × 8 pixels, from scikit-learn, on {frame['sheet'].nunique()} sheets, "
        "each in\none hand: the sheets are the tasks. No method is given the digit that an image shows; the table\n"
        f"has it, so that the results can be judged.\n\n$ mtclust {shlex.join(command)}\n"
    )
    code = main(command)
    if code != 0:
        return code
    _compare(frame, result)
    print(f"\nOpen this page in a browser: {(result / 'report.html').resolve()}")
    return 0


def _compare(frame: Any, result: Path) -> None:
    """How many images are named right when clusters are named by their most frequent digit, beside k-means."""
    import numpy as np

    labels = require("pandas", "cli").read_csv(result / "labels.csv")
    found, alone = labels["cluster"].to_numpy(), labels["alone"].to_numpy()
    sheets, digits = frame["sheet"].to_numpy(), frame["digit"].to_numpy()
    X, n_clusters = frame.filter(like="pixel").to_numpy(dtype=float), len(np.unique(found))
    each = np.zeros(len(X), dtype=np.int64)
    for sheet in np.unique(sheets):
        each[sheets == sheet] = _kmeans(X[sheets == sheet], n_clusters)
    print(
        "\nSuppose that somebody names each cluster by its most frequent digit. How many images are then named\n"
        f"correctly? All methods saw the same pixels and were asked for {n_clusters} clusters; mtclust was also told\n"
        "that a sheet has every digit about equally often (--sizes balanced).\n\n"
        f"  {'':<32}{'one name per cluster':>22}{'named again on':>18}\n"
        f"  {'':<32}{'for all sheets':>22}{'every sheet':>18}"
    )
    rows = (
        ("k-means on all sheets at once", _kmeans(X, n_clusters)),
        ("k-means on each sheet", each),
        ("mtclust, each sheet alone", alone),
        ("mtclust", found),
    )
    everywhere = np.zeros(len(X))
    for name, labelled in rows:
        once, anew = (100 * _named_right(digits, labelled, groups) for groups in (everywhere, sheets))
        print(f"  {name:<32}{once:>20.1f} %{anew:>16.1f} %")
    print(
        "\nThe first column needs clusters that mean the same on every sheet; k-means on each sheet numbers\n"
        "them arbitrarily. The second requires a look at every cluster of every sheet. The kernel of 'each\n"
        "sheet alone' was selected for all sheets together, and need not suit a single one."
    )


def _kmeans(X: Any, n_clusters: int) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(min(n_clusters, len(X)), n_init=10, random_state=0).fit_predict(X)


def _named_right(truth: Any, labels: Any, groups: Any) -> float:
    """Share of rows whose class is the most frequent one of their cluster within their group."""
    counts = require("pandas", "cli").crosstab([groups, labels], truth)
    return float(counts.max(axis=1).sum() / len(truth))
