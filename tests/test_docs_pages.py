"""The Python code on the documentation's pages runs, and prints what the pages say.

Blocks of a page run one after the other in one namespace, in an empty directory. What a page leaves to the reader
(their own tables) is given in a comment ``<!-- setup … -->`` on the page.
"""

import doctest
import re
import runpy
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
SETUP = re.compile(r"^<!-- setup\n(.*?)^-->$", flags=re.DOTALL | re.MULTILINE)
#: pages whose code needs more: the commands of the tutorial (test_tutorial.py)
ELSEWHERE = {"tutorial.md"}
PAGES = sorted(
    path.name
    for path in DOCS.glob("*.md")
    if path.name not in ELSEWHERE and BLOCK.search(path.read_text(encoding="utf-8"))
)


def run_page(text: str, name: str) -> int:
    """Run the blocks of a page; returns how many."""
    namespace: dict = {}
    for code in SETUP.findall(text):
        exec(compile(code, f"{name} (setup)", "exec"), namespace)
    blocks = BLOCK.findall(text)
    for number, code in enumerate(blocks):
        if ">>>" not in code:
            exec(compile(code, f"{name}, block {number}", "exec"), namespace)
            continue
        test = doctest.DocTestParser().get_doctest(code, namespace, f"{name}, block {number}", name, 0)
        shown: list[str] = []
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        failed = runner.run(test, out=shown.append, clear_globs=False).failed
        namespace = test.globs
        assert not failed, "".join(shown)
    return len(blocks)


@pytest.mark.parametrize("page", PAGES)
def test_code_on_pages_runs(page, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    assert run_page((DOCS / page).read_text(encoding="utf-8"), page)


def test_output_that_differs_from_the_page_is_noticed():
    with pytest.raises(AssertionError):
        run_page("```python\n>>> 1 + 1\n3\n\n```\n", "a page")


def test_broken_links_and_anchors_of_built_pages_are_found(tmp_path):
    broken_links = runpy.run_path(str(DOCS / "check_links.py"))["broken_links"]
    (tmp_path / "index.html").write_text(
        '<h1 id="top">a</h1><a href="#top">x</a><a href="b.html#here">x</a><a href="https://example.org/no">x</a>'
    )
    (tmp_path / "b.html").write_text('<p id="here">b</p><a href="index.html#gone">x</a><img src="no.png">')
    assert broken_links(tmp_path) == [
        "b.html: index.html#gone has no such anchor",
        "b.html: no.png does not exist",
    ]


def test_thumbnails_show_the_first_part_of_a_wide_figure():
    image = pytest.importorskip("PIL.Image")
    sys.path.insert(0, str(DOCS))
    try:
        from thumbnails import SIZE, first_part
    finally:
        sys.path.remove(str(DOCS))
    wide = image.new("RGB", (1200, 300), "white")
    wide.paste("red", (10, 10, 390, 290))
    wide.paste("blue", (410, 10, 1190, 290))
    shown = first_part(wide)
    assert shown.size == SIZE
    colours = {colour for _, colour in shown.getcolors(SIZE[0] * SIZE[1])}
    assert (255, 0, 0) in colours
    assert (0, 0, 255) not in colours
    narrow = wide.crop((0, 0, 500, 300))
    assert (0, 0, 255) in {colour for _, colour in first_part(narrow).getcolors(SIZE[0] * SIZE[1])}
