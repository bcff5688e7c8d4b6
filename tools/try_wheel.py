"""Install a built wheel in an empty environment and run the README's first example in an empty directory.

python tools/try_wheel.py dist
"""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def example(readme: str) -> str:
    """The first block of Python in the README."""
    found = re.search(r"^```python\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit("README.md has no block of Python.")
    return found[1]


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    wheels = sorted(Path(arguments[0]).resolve().glob("*.whl"))
    if len(wheels) != 1:
        raise SystemExit(f"{arguments[0]} must hold one wheel; it holds {len(wheels)}.")
    lines = example((ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as directory:
        environment = Path(directory) / "environment"
        venv.create(environment, with_pip=True)
        python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        empty = Path(directory) / "empty"
        empty.mkdir()
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheels[0])], check=True)
        subprocess.run([python, "-c", lines], cwd=empty, check=True)
        where = "import mtclust; print(mtclust.__version__, mtclust.__file__)"
        subprocess.run([python, "-c", where], cwd=empty, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
