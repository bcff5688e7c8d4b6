"""Install a built wheel in an empty environment and run the README's lines there, in an empty directory.

python tools/try_wheel.py dist
"""

import csv
import random
import re
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def example(readme: str) -> tuple[str, str]:
    """The block of Python that is followed by what it prints, and that."""
    found = re.search(r"^```python\n((?:(?!^```).*\n)*)```\n\n```\n((?:(?!^```).*\n)*)```$", readme, flags=re.MULTILINE)
    if found is None:
        raise SystemExit("README.md has no block of Python that is followed by its output.")
    return found[1], found[2]


def table_example(readme: str) -> str:
    """The block of Python on a data frame."""
    found = re.search(r"^```python\n(import mtclust\n(?:(?!^```).*\n)*)```$", readme, flags=re.MULTILINE)
    if found is None:
        raise SystemExit("README.md has no block of Python that begins with import mtclust.")
    return found[1]


def command(readme: str) -> list[str]:
    """The first command line, without its first word."""
    found = re.search(r"^```\nmtclust (.*)\n```$", readme, flags=re.MULTILINE)
    if found is None:
        raise SystemExit("README.md has no command line that begins with mtclust.")
    return shlex.split(found[1])


def write_table(command_line: list[str], directory: Path) -> tuple[Path, str]:
    """The table that a command line is about, two clear clusters in three tasks: its file and the column of tasks."""
    path, task = directory / command_line[1], command_line[command_line.index("--task-column") + 1]
    draw = random.Random(0)  # noqa: S311
    rows = [[f"{'abc'[k % 3]}", *(round(draw.gauss(9 * (k % 2), 1), 3) for _ in range(2))] for k in range(120)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[task, "visits", "spent"], *rows])
    return path, task


def try_wheel(wheel: Path, readme: str, directory: Path) -> None:
    """Install and run in ``directory``; fails where a line fails or prints something else."""
    environment, empty = directory / "environment", directory / "empty"
    empty.mkdir()
    venv.create(environment, with_pip=True)
    python = str(environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))

    def run(*arguments: str) -> str:
        print("$", "python", shlex.join(arguments)[:100].replace("\n", " "), flush=True)
        done = subprocess.run([python, *arguments], cwd=empty, check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{done.stdout}\nfailed with the exit code {done.returncode}.")
        return done.stdout

    run("-m", "pip", "install", "--quiet", str(wheel))
    print(run("-c", "import mtclust; print(mtclust.__version__, mtclust.__file__)"))
    code, shown = example(readme)
    printed = run("-c", code)
    if printed != shown:
        raise SystemExit(f"README.md shows\n{shown}\nbut its lines print\n{printed}")
    run("-m", "pip", "install", "--quiet", f"{wheel}[cli,report]")
    run("-m", "mtclust", "demo", "--out", "demo")
    path, task = write_table(command(readme), empty)
    run("-m", "mtclust", *command(readme))
    frame = f"import pandas\nframe = pandas.read_csv({path.name!r}).rename(columns={{{task!r}: 'hospital'}})\n"
    run("-c", f"{frame}new_rows = frame[:5]\n{table_example(readme)}")
    if not (empty / "report.html").exists():
        raise SystemExit("The README's lines on a data frame left no report.html.")


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    wheels = sorted(Path(arguments[0]).resolve().glob("*.whl"))
    if len(wheels) != 1:
        raise SystemExit(f"{arguments[0]} must hold one wheel; it holds {len(wheels)}.")
    with tempfile.TemporaryDirectory() as directory:
        try_wheel(wheels[0], (ROOT / "README.md").read_text(encoding="utf-8"), Path(directory))
    print("The README's lines run and print what it shows.")


if __name__ == "__main__":
    main(sys.argv[1:])
