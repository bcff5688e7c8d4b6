"""The audit of dependencies fails on known vulnerabilities, and says so where the database cannot be reached."""

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "audit.py"
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
WEAK = {"name": "weak", "version": "2.0", "vulns": [{"id": "CVE-2023-47248", "fix_versions": ["2.1"]}]}
UNKNOWN = {"name": "own", "skip_reason": "not in the database"}


@pytest.fixture
def audit(monkeypatch, capsys):
    """Run the tool with what the database answers."""
    spec = importlib.util.spec_from_file_location("audit", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(answer):
        def look_up(command, **options):
            if isinstance(answer, Exception):
                raise answer
            return subprocess.CompletedProcess(command, 1, stdout=answer, stderr="")

        monkeypatch.setattr(module.subprocess, "run", look_up)
        return module.main(), capsys.readouterr().out

    return run


def test_a_known_weakness_fails_and_is_named(audit):
    code, told = audit(json.dumps({"dependencies": [SOUND, WEAK, UNKNOWN]}))
    assert code == 1
    assert "weak 2.0: CVE-2023-47248, mended in 2.1" in told
    assert "2 packages looked up, 1 unknown, 1 known vulnerabilities" in told


def test_sound_packages_pass(audit):
    assert audit(json.dumps({"dependencies": [SOUND]})) == (
        0, "audit: 1 packages looked up, 0 unknown, 0 known vulnerabilities\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    "answer", ["", "no connection", "{}", json.dumps({"dependencies": [UNKNOWN]}), subprocess.TimeoutExpired("pip", 1)]
)
def test_a_database_that_cannot_be_reached_is_said_to_be(audit, answer):
    code, told = audit(answer)
    assert code == 0
    assert "dependencies were NOT checked" in told
