"""``python -m paper reproduce`` as a user runs it: quick versions, their tables, figures, pages and errors."""

import os
import re
import shutil

import matplotlib.image
import numpy as np
import pytest

from mtclust import __version__
from mtclust.exceptions import CommandError
from paper.__main__ import main as reproduce_main
from paper.experiments import EXPERIMENTS, load_experiment
from paper.experiments.claims import DIFFERS, FAILS, HOLDS, UNDECIDED, write_claims
from paper.experiments.driver import AS_PRINTED, OURS, Experiment, read_frame, run_experiment, write_report
from paper.experiments.runner import Cell, Outcome

#: figures of the paper by experiment; transfer has none of its own there
PAPER_FIGURES = {
    "pendigits": (1, 2, 3, 4),
    "balance": (5,),
    "complexity": (6,),
    "newsgroups": (7, 8, 9, 10, 11),
    "sentiment": (12, 13, 14, 15, 16, 17),
    "transfer": (),
}


def check_results(directory):
    """Rows without errors, figures that show something, a page that holds them."""
    name = directory.name
    frame = read_frame(directory.parent, name)
    assert len(frame) > 0
    assert frame["error"].eq("").all(), frame[frame["error"] != ""]["error"].unique()
    assert frame["nmi"].between(0, 1).all()
    assert frame["seconds"].gt(0).all()
    for scores, macro in zip(frame["nmi_per_task"], frame["nmi"]):
        assert np.mean(list(scores.values())) == pytest.approx(macro, abs=1e-5)
    markdown = (directory / "page.md").read_text(encoding="utf-8")
    numbers = re.findall(r"Counterpart of the paper's Fig\. (\d+)", markdown)
    assert sorted(map(int, numbers)) == list(PAPER_FIGURES[name])
    stems = re.findall(r"^!\[.*\]\(figures/(\w+)\.png\)$", markdown, flags=re.MULTILINE)
    assert markdown.count("![") == len(stems) > 0
    for stem in stems:
        image = matplotlib.image.imread(directory / "figures" / f"{stem}.png")
        ink = (image[..., :3] < 0.9).any(axis=-1).mean()
        assert 0.005 < ink < 0.9, f"{stem} is blank or black: {ink:.3f} of it is ink"
    assert "nan" not in markdown


NO_DATA_NEEDED = ("complexity", "transfer")


def check_those_that_need_no_data(tmp_path):
    methods = set(read_frame(tmp_path, "transfer")["method"])
    assert {"DSTC", "DMTFC", "DMTRC", "DMTRC auto", "STL", "MTFL", "MTRL"} <= methods
    assert set(read_frame(tmp_path, "complexity")["solver"]) == {"exchange", "cutting-plane"}
    write_claims(tmp_path, {}, quick=True)
    assert_a_verdict_per_claim(tmp_path / "claims.md", numbers="CT")


def assert_a_verdict_per_claim(page, numbers):
    text = page.read_text(encoding="utf-8")
    overview = re.findall(r"^\| ([A-Z])(\d+) \|.*\| \*\*([a-z ]+)\*\* \|$", text, flags=re.MULTILINE)
    assert {letter for letter, _, _ in overview} == set(numbers)
    for letter, number, verdict in overview:
        assert verdict in (HOLDS, DIFFERS, FAILS, UNDECIDED)
        detail = re.search(rf"^\*\*{letter}{number}\. .*: \*\*([a-z ]+)\*\*\n\n- ", text, flags=re.MULTILINE)
        assert detail is not None, f"{letter}{number} has no figures"
        assert detail[1] == verdict


def test_quick_experiments_their_pages_and_claims(tmp_path, capsys):
    """All of them where the data are at hand, otherwise those that need none; these also on a page of their own."""
    out = tmp_path / "all"
    everything = bool(os.environ.get("MTCLUST_DATA"))
    for name in ("all",) if everything else NO_DATA_NEEDED:
        assert reproduce_main(["reproduce", name, "--quick", "--out", str(out)]) == 0
    assert "page.md" in capsys.readouterr().out
    for name in EXPERIMENTS if everything else NO_DATA_NEEDED:
        check_results(out / name)
    if everything:
        assert_a_verdict_per_claim(out / "claims.md", numbers="PBCNST")
        assert (out / "claims.md").read_text(encoding="utf-8").count("![") > 15
        # the letter of the paper goes to the same pages
        assert reproduce_main(["reproduce", "pendigits", "--quick", "--as-printed", "--out", str(out)]) == 0
        assert "## As printed" in (out / "pendigits" / "page.md").read_text(encoding="utf-8")
        assert {"no labels", "as printed"} <= set(read_frame(out, "pendigits")["protocol"])
    for name in NO_DATA_NEEDED:
        shutil.copytree(out / name, tmp_path / "few" / name)
    check_those_that_need_no_data(tmp_path / "few")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--repeats", "0"], "--repeats must be at least 1; got 0"), (["--jobs", "-1"], "--jobs must be at least 1")],
)
def test_numbers_below_one_are_refused(arguments, message, capsys):
    assert reproduce_main(["reproduce", "balance", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_an_unknown_experiment_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        reproduce_main(["reproduce", "pendigit"])
    assert "'pendigits'" in capsys.readouterr().err


class Toy(Experiment):
    name, title, intro, repeats = "toy", "Toy", "A toy.", 1

    def __init__(self, execute):
        self._execute = execute

    def cells(self, repeats, quick, protocol):
        return [Cell("toy", "set", 0, ("A",))]

    def execute(self, cell):
        return self._execute(cell)

    def report(self, named, directory):
        return []


def one_row(cell):
    return [Outcome("A", nmi=0.25, seconds=1.0)]


def test_a_second_call_runs_nothing_and_leaves_every_file_as_it_is(tmp_path):
    seen, states = [], []

    def execute(cell):
        seen.append(cell.draw)
        return one_row(cell)

    for _ in range(2):
        run_experiment(Toy(execute), tmp_path)
        states.append({path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()})
    assert seen == [0]
    assert states[0] == states[1]
    assert {path.name for path in states[0]} >= {"runs.csv", "page.md", "run.json"}


def test_quick_and_full_rows_are_not_mixed(tmp_path):
    run_experiment(Toy(one_row), tmp_path, quick=True)
    with pytest.raises(CommandError, match="holds a quick run of toy"):
        run_experiment(Toy(one_row), tmp_path)


def test_two_commands_do_not_write_into_one_directory(tmp_path):
    def nested(cell):
        with pytest.raises(CommandError, match="another command is writing into"):
            run_experiment(Toy(one_row), tmp_path)
        return one_row(cell)

    run_experiment(Toy(nested), tmp_path)
    assert read_frame(tmp_path, "toy")["error"].tolist() == [""]


def test_rows_of_another_version_are_neither_finished_nor_shown(tmp_path, monkeypatch):
    seen = []

    def execute(cell):
        seen.append(cell.draw)
        return one_row(cell)

    run_experiment(Toy(execute), tmp_path)
    for module in ("runner", "driver"):
        monkeypatch.setattr(f"paper.experiments.{module}.__version__", "999.0")
    write_report(Toy(execute), tmp_path / "toy")
    page = (tmp_path / "toy" / "page.md").read_text(encoding="utf-8")
    assert f"**Rows of mtclust {__version__}**, not of this version (999.0)" in page
    run_experiment(Toy(execute), tmp_path)
    assert seen == [0, 0]
    assert read_frame(tmp_path, "toy")["version"].tolist() == ["999.0"]
    rows = (tmp_path / "toy" / "runs.csv").read_text(encoding="utf-8")
    assert rows.count("\ntoy,") == 2  # those of before are kept
    assert "Rows of mtclust 999.0." in (tmp_path / "toy" / "page.md").read_text(encoding="utf-8")


def test_reading_a_table_does_not_touch_it(tmp_path):
    run_experiment(Toy(one_row), tmp_path)
    path = tmp_path / "toy" / "runs.csv"
    with path.open("a") as file:
        file.write("toy,set,1,0,A,half a row that another process is writ")
    before = path.read_bytes()
    assert len(read_frame(tmp_path, "toy")) == 1
    assert path.read_bytes() == before


def test_page_only_draws_from_the_rows_there_are(tmp_path, capsys):
    assert reproduce_main(["reproduce", "transfer", "--page-only", "--out", str(tmp_path)]) == 1
    assert "holds no results; run python -m paper reproduce transfer first" in capsys.readouterr().err


def test_missing_data_are_named_with_what_is_kept(tmp_path):
    def no_file(cell):
        raise FileNotFoundError("pendigits.tra is not there")

    with pytest.raises(CommandError, match=r"data of toy are not at hand: pendigits\.tra is not there.*runs\.csv"):
        run_experiment(Toy(no_file), tmp_path)


def test_an_output_directory_that_cannot_be_made_is_an_error(tmp_path, capsys):
    (tmp_path / "file").write_text("not a directory")
    assert reproduce_main(["reproduce", "transfer", "--quick", "--out", str(tmp_path / "file" / "x")]) == 1
    assert capsys.readouterr().err.startswith("mtclust: ")


def row_keys(cells):
    return [key for keys in map(Cell.keys, cells) for key in keys]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_two_cells_of_an_experiment_share_a_row(name):
    experiment = load_experiment(name)
    for quick in (True, False):
        for protocol in (OURS, AS_PRINTED):
            keys = row_keys(experiment.cells(2, quick, protocol))
            assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_more_repeats_only_add_cells(name):
    experiment = load_experiment(name)
    fewer, more = (set(row_keys(experiment.cells(n, False, OURS))) for n in (1, 3))
    assert fewer < more
