"""``mtclust fit`` as a user drives it."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from table_helpers import error_of, fit, read_table, run_cli, shop_rows, write_table

import mtclust
from mtclust.app.words import kernel_in_words
from mtclust.metrics import macro_nmi, nmi

#: columns of labels.csv after the margin
MORE = ("probability", "stability", "outlier", "alone")


@pytest.fixture
def shops(tmp_path):
    return write_table(tmp_path / "shops.csv", shop_rows())


def test_labels_model_and_report_are_written(shops, tmp_path, capsys):
    out = tmp_path / "result"
    assert fit(shops, out, "--key", "customer,truth") == 0
    assert sorted(path.name for path in out.iterdir()) == ["labels.csv", "model.mtclust", "report.html"]
    rows = read_table(out / "labels.csv")
    assert list(rows[0]) == ["customer", "truth", "task", "cluster", "margin", *MORE]
    given = read_table(shops)
    assert [row["customer"] for row in rows] == [row["customer"] for row in given]
    assert [row["task"] for row in rows] == [row["shop"] for row in given]
    assert nmi([row["truth"] for row in rows], [row["cluster"] for row in rows]) == pytest.approx(1.0)
    assert all(float(row["margin"]) > 0 for row in rows)
    assert all(0 <= float(row[name]) <= 1 for row in rows for name in ("probability", "stability", "outlier"))
    assert np.mean([row["alone"] == row["cluster"] for row in rows]) > 0.9
    model = mtclust.load(out / "model.mtclust")
    assert model.labels.tolist() == [int(row["cluster"]) for row in rows]
    printed = capsys.readouterr().out
    kernel = kernel_in_words(model.model.selection_.kernel)
    said = f"3 clusters. They were clustered by 2 numbers and 1 category with DMTRC ({kernel})."
    assert said in " ".join(printed.split())
    assert re.search(r"Paris +30 +10 +10 +10\n", printed)
    assert f"Written to {out}" in printed


def test_the_same_seed_gives_the_same_files(shops, tmp_path):
    for name in ("a", "b"):
        assert fit(shops, tmp_path / name, "--quiet", "--seed", 3) == 0
    first, second = ((tmp_path / name / "labels.csv").read_bytes() for name in ("a", "b"))
    assert first == second


def test_quiet_prints_nothing(shops, tmp_path, capsys):
    assert fit(shops, tmp_path / "out", "--quiet") == 0
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


def test_several_files_are_one_task_each(tmp_path):
    files = [write_table(tmp_path / f"{task}.csv", shop_rows([task])) for task in ("Paris", "Rome")]
    assert fit(files, tmp_path / "out", "--columns", "width,height", task_column=None) == 0
    rows = read_table(tmp_path / "out" / "labels.csv")
    assert list(rows[0]) == ["row", "task", "cluster", "margin", *MORE]
    assert [row["task"] for row in rows] == ["Paris"] * 30 + ["Rome"] * 30
    assert [row["row"] for row in rows] == [str(k) for k in range(1, 31)] * 2


def test_parquet_gives_what_csv_gives(shops, tmp_path):
    pd.read_csv(shops).to_parquet(tmp_path / "shops.parquet")
    pd.read_csv(shops).to_csv(tmp_path / "shops.tsv", sep="\t", index=False)
    labels = []
    for name in ("shops.csv", "shops.parquet", "shops.tsv"):
        assert fit(tmp_path / name, tmp_path / f"out-{name}", "--columns", "width,height,colour", "--quiet") == 0
        labels.append((tmp_path / f"out-{name}" / "labels.csv").read_bytes())
    assert labels[0] == labels[1] == labels[2]


def test_names_beyond_ascii_survive(tmp_path, capsys):
    rows = [{**row, "shop": {"Paris": "Zürich Süd", "Rome": "京都"}[row["shop"]]} for row in shop_rows()]
    path = write_table(tmp_path / "läden.csv", rows, encoding="utf-8-sig")
    assert fit(path, tmp_path / "größe", "--key", "customer") == 0
    labels = read_table(tmp_path / "größe" / "labels.csv")
    assert {row["task"] for row in labels} == {"Zürich Süd", "京都"}
    report = (tmp_path / "größe" / "report.html").read_text(encoding="utf-8")
    assert "京都" in report
    assert "Zürich Süd" in capsys.readouterr().out


def test_text_is_clustered_by_its_words(tmp_path, capsys):
    rng = np.random.default_rng(0)
    words = ["pasta pizza sauce cheese bread", "engine wheel brake clutch diesel"]
    rows = [
        {"site": site, "review": " ".join(rng.choice(words[i % 2].split(), 4)), "truth": i % 2}
        for site in ("a", "b")
        for i in range(20)
    ]
    path = write_table(tmp_path / "reviews.csv", rows)
    assert fit(path, tmp_path / "out", "--text-column", "review", "--key", "truth", task_column="site", clusters=2) == 0
    labels = read_table(tmp_path / "out" / "labels.csv")
    assert nmi([row["truth"] for row in labels], [row["cluster"] for row in labels]) == pytest.approx(1.0)
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 clusters. They were clustered by 1 text column with DMTRC (linear kernel)." in printed


@pytest.mark.parametrize("method", ["dmtfc", "dstc"])
def test_the_other_methods(shops, tmp_path, capsys, method):
    assert fit(shops, tmp_path / "out", "--method", method, "--key", "customer,truth", "--kernel", "linear") == 0
    labels = read_table(tmp_path / "out" / "labels.csv")
    assert nmi([row["truth"] for row in labels], [row["cluster"] for row in labels]) == pytest.approx(1.0)
    assert f"with {method.upper()} (linear kernel)" in " ".join(capsys.readouterr().out.split())


def test_the_number_of_clusters_is_chosen_from_a_range(shops, tmp_path, capsys):
    assert fit(shops, tmp_path / "out", "--columns", "width,height", clusters="2-4") == 0
    printed = capsys.readouterr().out
    assert "number of clusters 3 clusters explain the most" in " ".join(printed.split())
    assert "Number of clusters" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_one_task_is_clustered_and_said_to_be_alone(tmp_path, capsys):
    path = write_table(tmp_path / "one.csv", shop_rows(["Paris"]))
    assert fit(path, tmp_path / "out") == 0
    assert "There is a single task" in capsys.readouterr().out


@pytest.mark.parametrize("clusters", ["auto", "2"])
def test_three_rows(tmp_path, capsys, clusters):
    path = write_table(tmp_path / "tiny.csv", shop_rows(["Paris"], rows=3))
    assert fit(path, tmp_path / "out", "--columns", "width,height", clusters=clusters) == 0
    assert "fewer than 5 rows per cluster" in capsys.readouterr().out
    assert len(read_table(tmp_path / "out" / "labels.csv")) == 3


def test_more_clusters_than_rows_is_refused(tmp_path, capsys):
    path = write_table(tmp_path / "tiny.csv", shop_rows(["Paris"], rows=3))
    assert fit(path, tmp_path / "out", "--columns", "width,height", clusters=7) == 1
    assert "n_clusters=7" in error_of(capsys)
    assert not (tmp_path / "out").exists()


def test_missing_values_are_filled_in_and_told(tmp_path, capsys):
    rows = shop_rows()
    rows[3]["width"] = ""
    rows[4]["width"] = "NA"
    rows[5]["colour"] = ""
    path = write_table(tmp_path / "shops.csv", rows)
    assert fit(path, tmp_path / "out", "--key", "customer") == 0
    told = "Missing values were filled in: width (2 rows) and colour (1 row)."
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--task-column", "store"], "--task-column: there is no column 'store'. The columns are 'customer', 'shop'"),
        (["--task-column", "shop", "--columns", "width,depth"], "--columns: there is no column 'depth'"),
        (["--task-column", "shop", "--text-column", "review"], "--text-column: there is no column 'review'"),
        (["--task-column", "shop", "--key", "id"], "--key: there is no column 'id'"),
        (["--task-column", "shop", "--columns", "shop,width"], "--columns names 'shop', which is the task column"),
        (["--task-column", "shop", "--key", "shop"], "--key names 'shop', which is the task column; leave it out"),
        (["--task-column", "shop", "--method", "dstc", "--coupling", "full"], "DSTC has no parameter --coupling"),
        (["--task-column", "shop", "--method", "dstc", "--center", "all"], "DSTC has no parameter --center"),
        (["--task-column", "shop", "--sizes", "big"], "sizes='big'"),
        (["--task-column", "shop", "--coupling", "2"], "The 'coupling' parameter of DMTRC must be a str among"),
        ([], "--task-column is needed with a single file"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_wrong_columns_and_options_are_named(shops, tmp_path, capsys, arguments, expected, ending):
    if ending == "parquet":
        pd.read_csv(shops).to_parquet(tmp_path / "shops.parquet")
        shops.unlink()
    data = tmp_path / f"shops.{ending}"
    assert run_cli("fit", data, *arguments, "--out", tmp_path / "out", "--clusters", "2") == 1
    assert expected in error_of(capsys)
    assert sorted(tmp_path.iterdir()) == [data]


def test_a_typo_is_answered_when_the_files_have_been_read(shops, tmp_path):
    code = "import sys; from mtclust.app.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    for wrong in (["--task-column", "store"], ["--task-column", "shop", "--key", "costumer"]):
        command = [sys.executable, "-c", code, "fit", shops, *wrong, "--out", tmp_path / "out"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "there is no column" in run.stderr
        assert not {"scipy", "sklearn", "numba"} & set(run.stdout.split())


@pytest.mark.parametrize("module", ["argparse", "mtclust.app.cli", "mtclust.app.tables.table", "numpy", "sklearn"])
def test_ctrl_c_while_modules_are_imported_is_answered_in_one_line(shops, tmp_path, module):
    code = (
        "import sys\n"
        "class CtrlC:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, CtrlC())\n"
        "from mtclust.__main__ import main\n"
        "code = main()\n"
        "print(code)\n"
    )
    command = [sys.executable, "-c", code, "fit", shops, "--task-column", "shop", "--out", tmp_path / "out"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("130\n", "mtclust: interrupted\n")
    assert list(tmp_path.iterdir()) == [shops]


@pytest.mark.parametrize("option", [["--clusters", "many"], ["--kernel", "cubic"]])
def test_arguments_that_cannot_be_read_are_wrong_usage(shops, tmp_path, capsys, option):
    with pytest.raises(SystemExit) as exit_info:
        run_cli("fit", shops, "--task-column", "shop", "--out", tmp_path / "out", *option)
    assert exit_info.value.code == 2
    assert option[0] in capsys.readouterr().err


def test_verbose_shows_the_traceback(shops, tmp_path, capsys):
    assert fit(shops, tmp_path / "out", "--verbose", task_column="store") == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.strip().splitlines()[-1].startswith("mtclust: --task-column")


def test_one_cluster_is_allowed_and_has_no_margin(shops, tmp_path):
    assert fit(shops, tmp_path / "out", "--quiet", clusters=1) == 0
    assert {(row["cluster"], row["margin"]) for row in read_table(tmp_path / "out" / "labels.csv")} == {("0", "")}


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_help_has_examples_and_exit_codes(command, capsys):
    with pytest.raises(SystemExit) as exit_info:
        run_cli(command, "--help")
    assert exit_info.value.code == 0
    printed = capsys.readouterr().out
    assert f"mtclust {command} " in printed.partition("examples:")[2]
    assert "exit codes: 0 done, 1 an error, which the message explains, 2 wrong usage, 130 interrupted" in printed


def test_the_report_gives_the_exact_command(shops, tmp_path):
    assert fit(shops, tmp_path / "out", "--quiet", "--key", "customer") == 0
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert (
        f"mtclust fit {shops} --task-column shop --clusters 3 --out {tmp_path / 'out'} --quiet --key customer" in report
    )


def test_the_report_knows_keys_only_on_request(shops, tmp_path):
    for name, more in (("without", []), ("with", ["--show-keys"])):
        assert fit(shops, tmp_path / name, "--quiet", "--key", "customer", *more) == 0
    without, with_keys = ((tmp_path / n / "report.html").read_text(encoding="utf-8") for n in ("without", "with"))
    assert "P007" not in without
    names = json.loads(re.search(r'id="data">(.*?)</script>', with_keys, re.DOTALL).group(1))["views"][0]["name"]
    assert "P007" in names


def test_an_id_that_is_recognised_stands_in_the_labels_beside_the_number_of_the_row(tmp_path):
    rows = [row | {"customer": f"C{7 * i:04d}"} for i, row in enumerate(shop_rows())]
    data = write_table(tmp_path / "shops.csv", rows)
    assert fit(data, tmp_path / "out", "--quiet", "--no-stability") == 0
    labels = read_table(tmp_path / "out" / "labels.csv")
    assert list(labels[0])[:4] == ["row", "customer", "task", "cluster"]
    assert [row["customer"] for row in labels] == [row["customer"] for row in rows]
    assert fit(data, tmp_path / "keyed", "--quiet", "--no-stability", "--key", "truth") == 0
    assert list(read_table(tmp_path / "keyed" / "labels.csv")[0])[:2] == ["truth", "task"]


def test_twenty_five_thousand_rows_for_which_no_kernel_matrix_could_be_held(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 25_000)
    table = pd.DataFrame((rng.normal(size=(25_000, 3)) + 5 * np.eye(3)[truth]).round(3), columns=["a", "b", "c"])
    table.assign(shop=rng.integers(0, 4, 25_000)).to_csv(tmp_path / "big.csv", index=False)
    assert fit(tmp_path / "big.csv", tmp_path / "out", "--sizes", "balanced") == 0
    assert "fall into 3 clusters" in capsys.readouterr().out
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert macro_nmi(truth, labels["cluster"], labels["task"]) > 0.95
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert len(report) < 2_000_000
    assert "rows, drawn at random" in report
