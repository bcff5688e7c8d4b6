"""Pages of results: the same sections as one self-contained HTML file and as Markdown beside the figures."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paper.experiments.table import replace_file


@dataclass(frozen=True)
class Picture:
    """A figure: ``figures/stem.png`` and ``.svg`` beside the page, and the caption of its counterpart in the paper."""

    stem: str
    caption: str
    paper: str = ""  # "Fig. 2: …" as the paper has it; empty if the paper has none
    folder: str = ""  # directory of the figures relative to the page


@dataclass(frozen=True)
class Section:
    """A heading with text, tables and figures under it."""

    title: str
    text: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[Picture] = ()

    @classmethod
    def with_pictures(cls, title: str, text: str, *found: Picture | None) -> Section:
        """A section with the figures that could be drawn."""
        return cls(title, text, pictures=[picture for picture in found if picture is not None])


@dataclass(frozen=True)
class Page:
    title: str
    command: str
    intro: str
    sections: Sequence[Section] = field(default_factory=tuple)


def write_page(page: Page, directory: Path, stem: str = "page") -> None:
    """Write ``stem.html`` and ``stem.md`` into a directory."""
    replace_file(directory / f"{stem}.html", as_html(page, directory).encode())
    replace_file(directory / f"{stem}.md", as_markdown(page).encode())


def as_markdown(page: Page) -> str:
    """The page as Markdown; figures are linked."""
    parts = [f"# {page.title}", f"Made by `{page.command}`", page.intro]
    for section in page.sections:
        parts += [f"## {section.title}", _escape_stars(section.text)]
        if section.header:
            lines = ["| " + " | ".join(map(_cell, section.header)) + " |", "|" + "---|" * len(section.header)]
            lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in section.rows]
            parts.append("\n".join(lines))
        for picture in section.pictures:
            parts.append(f"![{picture.caption}]({_path(picture, 'png')})")
            parts.append(_caption(picture))
    return "\n\n".join(part for part in parts if part) + "\n"


def as_html(page: Page, directory: Path) -> str:
    """The page as one file: figures are embedded, nothing is loaded from elsewhere."""
    body = [f"<h1>{_inline(page.title)}</h1>", f"<p>Made by <code>{html.escape(page.command)}</code></p>"]
    body.append(_paragraphs(page.intro))
    for section in page.sections:
        body.append(f"<h2>{_inline(section.title)}</h2>")
        body.append(_paragraphs(section.text))
        if section.header:
            head = "".join(f"<th>{_inline(cell)}</th>" for cell in section.header)
            rows = "".join(
                "<tr>" + "".join(f"<td>{_inline(str(cell))}</td>" for cell in row) + "</tr>" for row in section.rows
            )
            body.append(f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>')
        for picture in section.pictures:
            content = base64.b64encode((directory / _path(picture, "png")).read_bytes()).decode()
            body.append(
                f'<figure><img alt="{html.escape(picture.caption, quote=True)}" '
                f'src="data:image/png;base64,{content}"><figcaption>{_inline(_caption(picture))}</figcaption></figure>'
            )
    return _TEMPLATE.format(title=html.escape(page.title), style=_STYLE, body="\n".join(body))


def _path(picture: Picture, suffix: str) -> str:
    prefix = f"{picture.folder}/" if picture.folder else ""
    return f"{prefix}figures/{picture.stem}.{suffix}"


def _caption(picture: Picture) -> str:
    return picture.caption + (f" Counterpart of the paper's {picture.paper}" if picture.paper else "")


def _cell(cell: str) -> str:
    """A cell of a Markdown table."""
    return _escape_stars(str(cell).replace("|", "\\|").replace("\n", " "))


def _escape_stars(text: str) -> str:
    """A single star is the paper's mark of a method, not emphasis."""
    return re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text)


def _paragraphs(text: str) -> str:
    found = []
    for block in filter(None, text.split("\n\n")):
        items = block.split("\n- ")
        if items[0].startswith("- "):
            items[0] = items[0][2:]
            found.append("<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>")
        else:
            found.append(f"<p>{_inline(block)}</p>")
    return "\n".join(found)


def _inline(text: str) -> str:
    """Escape, then the two marks that the texts use: `code` and **bold**."""
    text = html.escape(str(text))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)


_STYLE = """
:root { color-scheme: light dark; --line: #ccc; --soft: #f3f3f3; }
@media (prefers-color-scheme: dark) { :root { --line: #555; --soft: #262626; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); }
figure { margin: 1.5rem 0; }
img { max-width: 100%; height: auto; background: white; }
figcaption { font-size: .85rem; }
code { background: var(--soft); padding: 0 .2em; }
@media print { h2 { break-after: avoid; } figure { break-inside: avoid; } }
"""

_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
