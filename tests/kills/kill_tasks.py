"""What is killed: an experiment of toy cells, commands, and the saving of a model."""

import contextlib
import csv
import io
import tempfile
import time
from pathlib import Path

import numpy as np

import paper.__main__
from mtclust import DSTC
from mtclust.app import cli
from paper.experiments.runner import Cell, Outcome, run_cells
from paper.experiments.table import RunTable

CELLS = [Cell("toy", "set", draw, ("A", "B"), setting={"x": 0.1}) for draw in range(8)]


def execute(cell):
    """Two rows and a matrix each; one cell fails, which is a result as well."""
    time.sleep(0.01)
    if cell.draw == 5:
        raise ValueError("draw 5, \n does not\twork")
    return [Outcome(m, nmi=cell.draw / 7, arrays={f"{m}_{cell.draw}": [[cell.draw]]}) for m in cell.methods]


def toy(directory, n_jobs):
    run_cells(CELLS, execute, RunTable(Path(directory) / "runs.csv"), n_jobs=n_jobs)
    return 0


def command(*arguments):
    main = paper.__main__.main if arguments[0] == "reproduce" else cli.main
    return main(list(arguments))


def demo(out):
    """``mtclust demo --out`` with fewer rows and less to choose."""
    few = cli.handwriting()[100:160]
    cli.handwriting = lambda: few
    cli.DEMO_OPTIONS = ("--clusters", "2", "--kernel", "linear", "--sizes", "balanced")
    return command("demo", "--out", out)


def models():
    """Two models that differ, with arrays large enough for a kill to fall between the writes."""
    X = np.random.default_rng(0).normal(size=(120, 400))
    X[:60] += 3
    options = {"kernel": "linear", "lambda1": 0.1, "sizes": "balanced", "n_init": 1, "random_state": 0}
    return {n: DSTC(n, **options).fit(X) for n in (2, 3)}


def write_shops(path):
    """A table of two tasks with three clear clusters; returns its path."""
    rng = np.random.default_rng(0)
    with Path(path).open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["shop", "width", "height", "colour"])
        for i in range(48):
            c = i % 3
            place = rng.normal(scale=0.3, size=2) + 4 * np.array([c == 0, c == 1])
            writer.writerow([("Paris", "Rome")[i // 24], *place.round(3), ("red", "green", "blue")[c]])
    return Path(path)


def fit_command(data, out, *more):
    options = ["--task-column", "shop", "--clusters", "3", "--kernel", "linear", "--sizes", "balanced", "--quiet",
               "--no-stability"]  # fmt: skip
    return ["fit", str(data), *options, "--out", str(out), *more]


class Tasks:
    """Tasks by name; what they need is imported, compiled and made once, before the first fork."""

    def __init__(self):
        self._models = models()
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
            out = Path(directory)
            data = write_shops(out / "shops.csv")
            assert command(*fit_command(data, out / "out")) == 0
            assert command("predict", str(out / "out"), str(data)) == 0
            import paper.experiments.driver
            import paper.experiments.transfer  # noqa: F401

    def run(self, name, arguments):
        """Run a task and return its exit code."""
        if name == "save":
            path, n_clusters = arguments
            self._models[n_clusters].save(path)
            return 0
        return {"toy": toy, "command": command, "demo": demo}[name](*arguments)
