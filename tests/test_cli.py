"""The command line as a newcomer runs it."""

import subprocess
import sys

import pytest

from mtclust import __version__
from mtclust.app import cli


def test_demo_goes_from_a_table_to_a_report(tmp_path, capsys):
    out = tmp_path / "new"
    for _ in range(2):  # again is all right
        assert cli.main(["demo", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"$ mtclust fit {out}/patients.csv --task-column age" in printed
    explained = {line.split("  ")[1]: line.split()[-2] for line in printed.splitlines() if line.endswith(" %")}
    assert list(explained) == ["k-means on all patients", "k-means on each age group", "mtclust"]
    assert all(0 < float(share) < 100 for share in explained.values())
    assert f"Open this page in a browser: {out}/result/report.html" in printed
    assert len((out / "patients.csv").read_text().splitlines()) == 443
    assert (out / "result" / "report.html").exists()


def test_demo_that_fails_leaves_nothing_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mtclust.app.demo.OPTIONS", ("--clusters", "1000"))
    assert cli.main(["demo", "--out", str(tmp_path / "new")]) == 1
    assert "fewer clusters" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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
