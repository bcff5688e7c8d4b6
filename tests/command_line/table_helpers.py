"""Small tables on disk, and the command line run on them."""

import csv

import numpy as np

from mtclust.app import cli


def shop_rows(tasks=("Paris", "Rome"), rows=30, seed=0):
    """Three clear clusters in every task, by two numbers and a colour."""
    rng = np.random.default_rng(seed)
    colours = ("red", "green", "blue")
    table = []
    for task in tasks:
        for i in range(rows):
            c = i % 3
            width, height = rng.normal(scale=0.3, size=2) + 4 * np.array([c == 0, c == 1])
            table.append(
                {
                    "customer": f"{task[:1]}{i:03d}",
                    "shop": task,
                    "width": f"{width:.3f}",
                    "height": f"{height:.3f}",
                    "colour": colours[c],
                    "truth": c,
                }
            )
    return table


def write_table(path, rows, *, separator=",", encoding="utf-8"):
    """Write rows given as dictionaries; returns the path."""
    with path.open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=separator)
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_table(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def run_cli(*arguments):
    """The exit code of a command."""
    return cli.main([str(argument) for argument in arguments])


def fit(data, out, *more, task_column="shop", clusters=3):
    data = data if isinstance(data, list) else [data]
    column = [] if task_column is None else ["--task-column", task_column]
    return run_cli("fit", *data, *column, "--clusters", clusters, "--out", out, *more)


def error_of(capsys):
    """The one error that was printed; a traceback would be more than one line."""
    err = capsys.readouterr().err.strip()
    assert "Traceback" not in err
    assert err.startswith("mtclust: ")
    return err
