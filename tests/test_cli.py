"""The command line as a newcomer runs it."""

import subprocess
import sys

import numpy as np
import pytest

from mtclust import __version__
from mtclust.app import cli
from mtclust.app.cli import handwriting


def test_demo_goes_from_a_table_to_a_report(tmp_path, capsys, monkeypatch):
    out = tmp_path / "new"
    with monkeypatch.context() as quick:
        quick.setattr("mtclust.app.cli.DEMO_OPTIONS", ("--clusters", "2", "--kernel", "linear", "--no-stability"))
        quick.setattr("mtclust.app.cli.handwriting", lambda: handwriting()[100:160])
        assert cli.main(["demo", "--out", str(out)]) == 0
    assert cli.main(["demo", "--out", str(out)]) == 0, "again is all right"
    printed = capsys.readouterr().out
    assert f"$ mtclust fit {out}/handwriting.csv --task-column sheet" in printed
    lines = printed[printed.rindex("named again on") :].splitlines()
    right = {line[2:34].strip(): line[34:].replace("%", "").split() for line in lines if line.endswith(" %")}
    assert list(right) == [
        "k-means on all sheets at once",
        "k-means on each sheet",
        "mtclust, each sheet alone",
        "mtclust",
    ]
    shares = {name: [float(share) for share in columns] for name, columns in right.items()}
    assert all(0 < once <= anew <= 100 for once, anew in shares.values()), "more names are right more often"
    assert min(shares["mtclust"]) > 95
    assert shares["k-means on each sheet"][0] < 50, "its numbers mean nothing on other sheets"
    assert f"Open this page in a browser: {out}/result/report.html" in printed
    assert len((out / "handwriting.csv").read_text().splitlines()) == 1798
    assert (out / "result" / "report.html").exists()


def test_every_sheet_of_the_demonstration_asks_for_the_same_digits():
    frame = handwriting()
    sheets = [part["digit"].to_numpy() for _, part in frame.groupby("sheet", sort=False)]
    assert len(sheets) == 14
    assert all(122 <= len(sheet) <= 130 for sheet in sheets)
    assert all(np.mean(sheet[:10] == sheets[0][:10]) >= 0.9 for sheet in sheets)


def test_demo_that_fails_leaves_no_results(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mtclust.app.cli.DEMO_OPTIONS", ("--clusters", "3000"))
    assert cli.main(["demo", "--out", str(tmp_path / "new")]) == 1
    assert "fewer clusters" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["handwriting.csv"]


def test_module_and_version():
    run = subprocess.run([sys.executable, "-m", "mtclust", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"mtclust {__version__}"


def test_no_command_is_an_error_that_lists_them(capsys):
    with pytest.raises(SystemExit) as exit_info:
        cli.main([])
    assert exit_info.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_an_output_directory_that_cannot_be_made_is_an_error_without_traceback(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    assert cli.main(["demo", "--out", str(blocked / "inside")]) == 1
    assert capsys.readouterr().err.startswith("mtclust: ")
