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


def where_things_are():
    """Rows of the tables of CONTRIBUTING that name files of the package: the cells of each."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Where things are")[1].split("| elsewhere |")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ") and "`" in line]


def test_every_file_that_the_guide_for_contributors_names_exists():
    package = ROOT / "src" / "mtclust"
    names = {path.relative_to(package).as_posix() for path in package.rglob("*.py")}
    folders = {path.relative_to(package).as_posix() + "/" for path in package.rglob("*") if path.is_dir()}
    named = {name for row in where_things_are() for cell in row for name in re.findall(r"`([\w/*]+(?:\.py|/))`", cell)}
    assert "choose/settings.py" in named
    missing = [
        name
        for name in named - {"src/mtclust"}
        if not any(
            re.search(rf"(^|/){re.escape(name).replace(chr(92) + '*', '.*')}$", known) for known in names | folders
        )
    ]
    assert missing == []


def test_every_function_that_the_guide_follows_a_fit_through_exists():
    steps = [cell for row in where_things_are() for cell in row[1:] if re.match(r"`[\w/]+\.py`: `", cell)]
    assert len(steps) == 9
    for file, functions in re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", "; ".join(steps)):
        text = (ROOT / "src" / "mtclust" / file).read_text(encoding="utf-8")
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", functions):
            assert re.search(rf"^ *(def|class) {name}\b", text, flags=re.MULTILINE), f"{file}: {name}"
