"""The tutorial does what it says: its commands are run and its printed output compared."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from mtclust.app import cli

TUTORIAL = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```(python|console|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")


def run(command):
    """The output of one line of a console block; what only prepares or shows files is done here."""
    program, *arguments = shlex.split(command)
    if program == "pip":
        return ""
    if program == "head":
        lines = Path(arguments[1]).read_text().splitlines(keepends=True)
        return "".join(lines[: -int(arguments[0])])
    assert program == "mtclust"
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
        assert cli.main(arguments) == 0
    return printed.getvalue()


def assert_alike(printed, expected):
    """The same words; numbers may differ a little, since other machines round differently."""
    printed, expected = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (printed, expected))
    assert " ".join(_NUMBER.sub("#", printed).split()) == " ".join(_NUMBER.sub("#", expected).split())
    for ours, theirs in zip(_NUMBER.findall(printed), _NUMBER.findall(expected)):
        assert float(ours) == pytest.approx(float(theirs), rel=0.05, abs=2 if "." not in theirs else 0.05)


def test_commands_print_what_the_tutorial_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = ""
    compared = 0
    text = TUTORIAL.read_text(encoding="utf-8").replace("\\\n", "")
    for language, block in _BLOCK.findall(text):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block, str(TUTORIAL), "exec"), {})
            output = printed.getvalue()
        elif language == "text":
            assert_alike(output, block)
            compared += 1
        else:
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, expected = part.partition("\n")
                printed = run(command)
                assert_alike(printed, expected)
                compared += bool(expected.strip())
    assert compared == 3


def test_the_reference_of_the_command_line_states_the_limits_of_the_code():
    from mtclust.app.cli import RESULT_FILES
    from mtclust.app.tables.encoding import MOST_LEVELS
    from mtclust.app.tables.values import MISSING
    from mtclust.choose.number import CANDIDATES, NUMBER_ROWS

    text = " ".join((TUTORIAL.parent / "tables.md").read_text(encoding="utf-8").split())
    assert f"{CANDIDATES[0]} to {CANDIDATES[-1]}, on at most {NUMBER_ROWS} rows" in text
    assert f"at most {MOST_LEVELS} different strings" in text
    assert all(f"`{cell}`" in text for cell in MISSING if cell)
    assert all(f"| `{name}` |" in text for name in RESULT_FILES)
    for option in re.findall(r"(?<!-)--[a-z][a-z-]+", text):
        assert any(option in parser.format_help() for parser in _parsers()), option


def _parsers():
    parser = cli.build_parser()
    (commands,) = [action for action in parser._actions if hasattr(action, "choices") and action.choices]
    return [parser, *commands.choices.values()]
