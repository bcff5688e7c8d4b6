"""The command line as a newcomer runs it."""

import subprocess
import sys

import pytest

from mtclust import __version__
from mtclust.app import cli


def test_demo_prints_the_comparison_and_saves_the_picture(tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    means = {line[:5]: float(line.split()[-1]) for line in printed.splitlines() if line[:5] in ("DMTRC", "DSTC:")}
    assert means["DMTRC"] > means["DSTC:"] > 0.8
    assert "Groups of related tasks: 0, 1, 2 and 3, 4, 5" in printed
    picture = tmp_path / "new" / "task_relationship.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


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
