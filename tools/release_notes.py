"""Print what CHANGELOG.md says about a release; fails where tag, version and changelog do not agree.

python tools/release_notes.py v1.2.3 > notes.md
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version(root: Path = ROOT) -> str:
    """The version, from the one place where it stands."""
    text = (root / "src" / "mtclust" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, flags=re.MULTILINE)
    if found is None:
        raise SystemExit('src/mtclust/__init__.py has no line __version__ = "…".')
    return found[1]


def notes(changelog: str, release: str) -> str:
    """The section of a release, without its heading."""
    heading = re.compile(rf"^## \[{re.escape(release)}\].*$", flags=re.MULTILINE)
    found = heading.search(changelog)
    if found is None:
        raise SystemExit(f"CHANGELOG.md has no section ## [{release}].")
    text = re.split(r"^## ", changelog[found.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not text:
        raise SystemExit(f"The section of {release} in CHANGELOG.md is empty.")
    return text


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    (tag,) = arguments
    if tag != f"v{version()}":
        raise SystemExit(f"The tag is {tag}, but the version is {version()}: the tag must be v{version()}.")
    print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version()))


if __name__ == "__main__":
    main(sys.argv[1:])
