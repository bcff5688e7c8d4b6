"""Whole tables through both doors, the command line and Python: what was read, what was left out, what was said."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
from table_helpers import run_cli

import mtclust
from mtclust.app.tables.encoding import TableEncoder
from mtclust.app.tables.table import read_any

#: settings that make a fit quick; what is read does not depend on them
QUICK = {"kernel": "linear", "sizes": 1.0}
ONE_NAME = "different in nearly every row"
TASKS_APART = "the same in all rows of a task"
COIN = "not associated with any other column"

#: of every table that came with the benchmarks: its task column, the columns in words, what is left out and why
REAL = {
    "customers.csv": (
        "shop", "5 numbers and 2 categories",
        f"customer_id and postcode (named as an identifier); name and email ({ONE_NAME}); country (the same in "
        f"every row); newsletter and signup ({COIN})",
    ),
    "penguins.csv": ("island", "4 numbers and 2 categories", f"year ({COIN})"),
    "nostructure.csv": ("shop", "3 numbers", f"newsletter and gender ({COIN})"),
    "reviews.csv": ("product", "1 category and 1 text", "id (counts the rows of each task)"),
    "ids.csv": (
        "shop", "3 numbers",
        "account (a different number in nearly every row); phone (named as an identifier)",
    ),
    "sixty.csv": ("hospital", "7 numbers", ""),
    "wide.csv": (
        "lab", "6 numbers", f"{', '.join(f'x{k}' for k in range(3, 15))} and 183 more ({COIN})",
    ),
    "cell_lines.csv.gz": ("batch", "21 numbers", ""),
    "mice.csv.gz": ("task", "77 numbers and 1 category", f"Genotype and Treatment ({TASKS_APART})"),
    "gas.csv.gz": ("batch", "129 numbers", ""),
}  # fmt: skip


def left_out(notes):
    (said,) = [note for note in notes if note.startswith("Columns ignored: ")] or [""]
    return said.removeprefix("Columns ignored: ").removesuffix(".")


@pytest.mark.parametrize("name", REAL)
def test_real_tables_are_read_as_a_person_would(name):
    home = os.environ.get("MTCLUST_DATA")
    if home is None:
        pytest.skip("MTCLUST_DATA does not say where the real data are")
    task, columns, gone = REAL[name]
    table = read_any(Path(home) / "tables" / name, task)
    encoder = TableEncoder.fit(table)
    assert encoder.describe() == columns
    assert left_out(encoder.notes) == gone


def kinds(rng, n, tasks):
    """Three kinds of rows of unequal shares, and a task for each."""
    return rng.choice(3, n, p=[0.5, 0.3, 0.2]), rng.choice(tasks, n)


def subscriptions(home, rng):
    """Money, per cent, thousands, dates, booleans, gaps that mean something; semicolons, an old encoding."""
    kind, region = kinds(rng, 300, ["North", "Süd", "West"])
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 300, 300), unit="D")
    frame = pd.DataFrame(
        {
            "subscription": [f"SUB-{i:05d}" for i in range(300)],
            "region": region,
            "fee": [f"€{v:,.2f}" for v in np.array([190, 890, 1490])[kind] * rng.uniform(0.9, 1.1, 300)],
            "discount": [f"{v:.0f}%" for v in np.array([5, 20, 40])[kind] + rng.normal(0, 3, 300)],
            "followers": [f"{v:.1f}k" for v in np.array([1.2, 8, 20])[kind] * rng.uniform(0.8, 1.2, 300)],
            "trial": rng.random(300) < 0.4,
            "complained": np.where(kind == 2, "", days.strftime("%d.%m.%Y")),
        }
    )
    frame.to_csv(home / "subscriptions.csv", sep=";", index=False, encoding="cp1252")
    return ["subscriptions.csv"], {"task": "region"}, kind, "3 numbers and 1 date", [
        "subscriptions.csv is not UTF-8; it was read as cp1252.", "the separator is ';'",
        f"subscription ({ONE_NAME}); trial ({COIN})", "fee ('€", "%' is ", "k' is ", "complained (",
    ]  # fmt: skip


def sensors(home, rng):
    """A counter that begins anew in every task, what only the task has, ratings by chance, mostly missing cells."""
    kind, site = kinds(rng, 300, ["dock", "roof", "yard"])
    order = np.argsort(site, kind="stable")
    kind, site = kind[order], site[order]
    frame = pd.DataFrame(
        {
            "site": site,
            "reading": np.concatenate([np.arange(1, n + 1) for n in np.unique(site, return_counts=True)[1]]),
            "altitude": pd.Series(site).map({"dock": 2, "roof": 31, "yard": 4}),
            "warmth": np.array([15, 22, 30])[kind] + rng.normal(0, 1, 300),
            "humidity": np.array([80, 50, 30])[kind] + rng.normal(0, 4, 300),
            "battery": np.where(rng.random(300) < 0.6, np.nan, rng.uniform(3, 4, 300)),
            "rating": rng.integers(1, 6, 300),
        }
    )
    frame.to_parquet(home / "sensors.parquet")
    return ["sensors.parquet"], {"task": "site"}, kind, "2 numbers", [
        "reading (counts the rows of each task)", f"altitude ({TASKS_APART})", "battery (missing in ",
        f"rating ({COIN})",
    ]  # fmt: skip


def staff(home, rng):
    """One file per task, each of another format and with other columns."""
    parts = []
    for i, name in enumerate(("berlin.csv", "lyon.xlsx", "turin.parquet")):
        kind = rng.choice(3, 80, p=[0.4, 0.4, 0.2])
        part = pd.DataFrame(
            {
                "number": np.arange(1000 * i, 1000 * i + 80),
                "hours": np.array([20, 38, 50])[kind] + rng.normal(0, 1, 80),
                "contract": np.array(["part", "full", "full"])[kind],
                f"only in {name}": rng.normal(size=80),
            }
        )
        write = {"csv": part.to_csv, "xlsx": part.to_excel, "parquet": part.to_parquet}[name.split(".")[1]]
        write(home / name, index=False)
        parts.append(kind)
    files = ["berlin.csv", "lyon.xlsx", "turin.parquet"]
    return files, {}, np.concatenate(parts), "1 number and 1 category", [
        "Columns that only some of the tables have were left out: 'only in berlin.csv'", "number (counts the rows",
    ]  # fmt: skip


def tickets(home, rng):
    """Text beside a number, a priority by chance and a column of many names."""
    words = ("login password reset locked", "invoice refund charged amount", "crash error update screen")
    kind, product = kinds(rng, 300, ["web", "phone"])
    frame = pd.DataFrame(
        {
            "product": product,
            "customer": [f"cust{rng.integers(200)}" for _ in range(300)],
            "message": [" ".join(rng.choice(words[k].split(), 4)) + " please help" for k in kind],
            "priority": rng.choice(["low", "mid", "high"], 300),
            "minutes": np.rint(rng.exponential(300, 300)).astype(int),
        }
    )
    frame.to_csv(home / "tickets.tsv.gz", sep="\t", index=False)
    return ["tickets.tsv.gz"], {"task": "product"}, kind, "1 number and 1 text", [
        "distinct values; give", f"priority ({COIN})", "The text message is used by its main topics",
    ]  # fmt: skip


@pytest.mark.parametrize("make", [subscriptions, sensors, staff, tickets])
def test_both_doors_read_say_and_find_the_same(make, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files, options, kind, columns, said = make(tmp_path, np.random.default_rng(5))
    flags = ["--task-column", options["task"]] if options else []
    arguments = ["--clusters", 3, "--kernel", "linear", "--sizes", 1, "--no-stability", "--out", tmp_path / "out"]
    assert run_cli("fit", *files, *flags, *arguments) == 0
    printed = " ".join(capsys.readouterr().out.split())
    found = mtclust.cluster(files, n_clusters=3, **options, **QUICK)
    assert found.encoder.describe() == columns
    assert f"clustered by {columns} with DMTRC" in printed
    notes = " ".join(found.notes)
    for words in said:
        assert words in notes
        assert words in printed
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")["cluster"]
    assert labels.tolist() == found.labels.tolist()
    table = pd.crosstab(kind, labels.to_numpy())
    assert table.to_numpy().max(axis=1).sum() > 0.9 * len(kind), "the kinds of rows are found"


def test_the_fifth_table_is_a_polars_frame_with_gaps():
    rng = np.random.default_rng(5)
    kind, shop = kinds(rng, 300, ["Oslo", "Rome"])
    spent = np.array([10.0, 50, 90])[kind] + rng.normal(0, 4, 300)
    frame = polars.DataFrame(
        {
            "shop": shop,
            "spent": [None if k % 10 == 0 else v for k, v in enumerate(spent)],
            "level": polars.Series(np.array(["low", "mid", "top"])[kind], dtype=polars.Categorical),
            "visits": [None if k % 7 == 0 else int(v) for k, v in enumerate(3 * kind + rng.integers(0, 3, 300))],
            "coin": rng.choice([True, False], 300),
        }
    )
    found = mtclust.cluster(frame, "shop", 3, **QUICK)
    assert isinstance(found.labels, polars.Series)
    assert found.encoder.describe() == "2 numbers and 1 category"
    notes = " ".join(found.notes)
    assert f"coin ({COIN})" in notes
    assert "filled in: spent (30 rows) and visits (43 rows)" in notes
    assert pd.crosstab(kind, found.labels.to_numpy()).to_numpy().max(axis=1).sum() > 285
