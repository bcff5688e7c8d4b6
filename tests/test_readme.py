"""The README's example prints what it says."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_the_output_shown():
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, flags=re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown
