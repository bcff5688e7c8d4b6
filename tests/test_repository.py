"""The repository as a host and a release see it: one version, workflows that call what exists, notes of a release."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mtclust

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def run_tool(name, *arguments, cwd=ROOT):
    command = [sys.executable, str(cwd / "tools" / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "mtclust.__version__"}
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_workflows_call_targets_and_tools_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    text = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    called = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert called
    assert called <= targets
    for tool in set(re.findall(r"python (tools/\w+\.py)", text)):
        assert (ROOT / tool).exists()


def test_hosted_tests_cover_the_python_versions_that_are_promised():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    promised = [name.rpartition(" ")[2] for name in classifiers if re.search(r":: 3\.\d+$", name)]
    tests = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', re.search(r"^ *python: \[.*\]$", tests, flags=re.MULTILINE)[0]) == promised


@pytest.fixture
def project(tmp_path):
    """A copy of what the notes of a release are read from."""

    def make(version, changelog):
        for folder in ("tools", "src/mtclust"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "tools" / "release_notes.py").write_bytes((ROOT / "tools" / "release_notes.py").read_bytes())
        (tmp_path / "src/mtclust/__init__.py").write_text(f'__version__ = "{version}"\n')
        (tmp_path / "CHANGELOG.md").write_text(changelog)
        return tmp_path

    return make


def test_notes_of_a_release_are_its_section_of_the_changelog(project):
    text = "# Changelog\n\n## [Unreleased]\n\n- later\n\n## [1.2.3] - 2030-01-01\n\n- now\n\n## [1.2.2]\n\n- before\n"
    result = run_tool("release_notes.py", "v1.2.3", cwd=project("1.2.3", text))
    assert (result.returncode, result.stdout) == (0, "- now\n")


@pytest.mark.parametrize(
    ("tag", "changelog", "message"),
    [
        ("v1.2.4", "## [1.2.3]\n\n- now\n", "the tag must be v1.2.3"),
        ("v1.2.3", "## [1.2.2]\n\n- before\n", "no section"),
        ("v1.2.3", "## [1.2.3]\n\n## [1.2.2]\n\n- before\n", "is empty"),
    ],
)
def test_a_release_whose_tag_version_and_changelog_disagree_is_refused(project, tag, changelog, message):
    result = run_tool("release_notes.py", tag, cwd=project("1.2.3", changelog))
    assert result.returncode != 0
    assert message in result.stderr


def test_the_tool_reads_the_version_of_the_package():
    result = run_tool("release_notes.py", "v0")
    assert f"the version is {mtclust.__version__}" in result.stderr


def test_the_files_of_the_quick_tests_exist():
    from tests.conftest import QUICK, TESTS

    assert not [name for name in QUICK if not (TESTS / name).exists()]


def test_everything_that_the_guide_for_contributors_names_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:python )?([\w./]*(?:\.(?:py|md|toml|json)|\w/))", text))
    assert {"core/", "tools/walk.py", "estimators/base.py"} <= named
    places = (ROOT, ROOT / "src" / "mtclust", ROOT / ".github" / "workflows", ROOT / "src" / "mtclust" / "persistence")
    missing = [name for name in named - {"docs/_build/"} if not any((place / name).exists() for place in places)]
    assert missing == []
    targets = re.findall(r"`make ([\w-]+)`", text)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, flags=re.MULTILINE)]


def test_every_room_of_the_package_is_in_the_guide_for_contributors():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = [path.parent.name for path in (ROOT / "src" / "mtclust").glob("*/__init__.py")]
    assert not [room for room in rooms if f"`{room}/`" not in text]


def test_a_module_that_mutation_changes_is_tried_with_its_doctests_and_its_test_file(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from mutation import DOCTESTS, PACKAGE, ROOMS, tests_of

    assert all((PACKAGE / room).is_dir() for room in ROOMS)
    assert tests_of("core/labels.py")[0][:2] == [DOCTESTS, "tests/test_labels.py"]
