"""Check every internal link, anchor and picture of the built pages: ``python docs/check_links.py docs/_build/html``.

Links to other sites are not followed: that needs a network, and they break without a change of ours.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: pages that Sphinx makes, or that only a browser with JavaScript fills
_NOT_OURS = ("genindex.html", "py-modindex.html", "search.html")


class Page(HTMLParser):
    """The ids a page has, and what it links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.update(value for value in (given.get("id"), given.get("name") if tag == "a" else None) if value)
        link = given.get("href") if tag in ("a", "link") else given.get("src") if tag in ("img", "script") else None
        if link:
            self.links.append(link)


def broken_links(root: Path) -> list[str]:
    """What is wrong, one line per link."""
    pages = {path.resolve(): Page(path) for path in root.rglob("*.html")}
    problems = []
    for path, page in pages.items():
        if path.name in _NOT_OURS or "_static" in path.parts:
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                problems.append(f"{path.relative_to(root.resolve())}: {link} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                problems.append(f"{path.relative_to(root.resolve())}: {link} has no such anchor")
    return problems


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html")
    if not (root / "index.html").exists():
        print(f"{root} holds no built documentation; run make docs first.", file=sys.stderr)
        return 2
    problems = broken_links(root)
    print("\n".join(problems) if problems else f"all internal links of {root} are good")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
