"""Pages of results: Markdown beside the figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paper.experiments.table import replace_file


@dataclass(frozen=True)
class Picture:
    """A figure, ``figures/stem.png`` beside the page, and the caption of its counterpart in the paper."""

    stem: str
    caption: str
    paper: str = ""  # "Fig. 2: …" as the paper has it; empty if the paper has none
    folder: str = ""  # where the figures are, seen from the page: empty, or with a slash at its end


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


def write_page(path: Path, title: str, command: str, intro: str, sections: Sequence[Section]) -> None:
    """Write a page of Markdown; figures are linked."""
    parts = [f"# {title}", f"Made by `{command}`", intro]
    for section in sections:
        parts += [f"## {section.title}", _escape_stars(section.text)]
        if section.header:
            lines = ["| " + " | ".join(map(_cell, section.header)) + " |", "|" + "---|" * len(section.header)]
            lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in section.rows]
            parts.append("\n".join(lines))
        for picture in section.pictures:
            parts.append(f"![{picture.caption}]({picture.folder}figures/{picture.stem}.png)")
            parts.append(picture.caption + (f" Counterpart of the paper's {picture.paper}" if picture.paper else ""))
    replace_file(path, ("\n\n".join(part for part in parts if part) + "\n").encode())


def _cell(cell: str) -> str:
    """A cell of a Markdown table."""
    return _escape_stars(str(cell).replace("|", "\\|").replace("\n", " "))


def _escape_stars(text: str) -> str:
    """A single star is the paper's mark of a method, not emphasis."""
    return re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text)
