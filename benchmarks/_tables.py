"""What the benchmarks share: rows that survive an interruption, and a Markdown table with its command on top."""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


class Rows:
    """A CSV file that grows row by row; what is in it already is not run again."""

    def __init__(self, path: Path, keys: Sequence[str], values: Sequence[str]) -> None:
        self.path, self.keys, self.values = path, list(keys), list(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            self._append(dict(zip(self.keys + self.values, self.keys + self.values)))
        with path.open(newline="") as file:
            if next(csv.reader(file)) != self.keys + self.values:
                raise SystemExit(f"{path} was written with other columns: move it away to measure anew")

    def _append(self, row: dict[str, Any]) -> None:
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow([row[name] for name in self.keys + self.values])

    def read(self) -> list[dict[str, str]]:
        with self.path.open(newline="") as file:
            return list(csv.DictReader(file))

    def has(self, **keys: Any) -> bool:
        return any(all(row[name] == str(value) for name, value in keys.items()) for row in self.read())

    def add(self, **row: Any) -> None:
        self._append({name: round(v, 6) if isinstance(v, float) else v for name, v in row.items()})


def made_by() -> str:
    """The line on top of a page: the command that made it."""
    return f"Made by `{' '.join(['python', *map(shlex.quote, sys.argv)])}`"


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> list[str]:
    """The lines of a table in Markdown."""
    body = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return body + ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]


def write_markdown(path: Path, header: Sequence[str], lines: Sequence[Sequence[Any]], notes: str) -> None:
    """A table, the command that made it above, remarks below."""
    path.write_text("\n".join([made_by(), "", *markdown_table(header, lines), "", notes, ""]))
    print(path.read_text())
