"""The process that is killed, the moments, and what is counted.

CI kills at a few moments; ``MTCLUST_KILLS=500`` asks for about so many in all, ``MTCLUST_KILL_SEED`` for other ones.
"""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kill_server import OUTSIDE

HERE = Path(__file__).parent
#: kills in all that are asked for; without, every test has its own small number
WANTED = int(os.environ.get("MTCLUST_KILLS", "0"))
SEED = int(os.environ.get("MTCLUST_KILL_SEED", "0"))
#: what a file or directory is called while it is being made
UNFINISHED = ".mtclust-"
#: signal → exit codes of a command that it ended; the last is that of one that had not begun
CODES = {
    signal.SIGKILL: (-signal.SIGKILL,),
    signal.SIGINT: (130, OUTSIDE),
    signal.SIGTERM: (143, -signal.SIGTERM),
}
counted: Counter[str] = Counter()


def clear(place, earlier=None):
    """An empty directory, or one with the results of an earlier fit in ``out``."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if earlier is not None:
        shutil.copytree(earlier, place / "out")


def moments(name, share, few):
    """Random points of a run, as parts of its duration: ``share`` of all kills asked for, or a few."""
    rng = random.Random(zlib.crc32(name.encode()) + SEED)
    return [rng.random() for _ in range(max(few, round(WANTED * share)))]


@dataclass(frozen=True)
class Ended:
    """How a task ended."""

    status: int
    seconds: float
    printed: str


class Server:
    """Runs tasks in forks of a process that has the imports behind it; see ``kill_server.py``."""

    def __init__(self, directory):
        self._log = directory / "log"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path[1:]]), "PYTHONWARNINGS": ""}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "kill_server.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        assert "ready" in self.process.stdout.readline()

    def run(self, task, *arguments, **fate):
        request = {"task": task, "arguments": [*arguments], "log": str(self._log), **fate}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return Ended(answer["status"], answer["seconds"], self._log.read_text(encoding="utf-8", errors="replace"))

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def leftovers(directory):
    """What was being made when the process ended, by its name."""
    return sorted(path for path in directory.rglob("*") if UNFINISHED in path.name)


def contents(directory):
    """Path → bytes of all finished files below a directory."""
    unfinished = leftovers(directory)
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not any(path == half or half in path.parents for half in unfinished)
    }


def whole_results(found, fits):
    """Whether every file is that of one of these fits; reports differ by the command that is in them."""
    allowed = [contents(fit) for fit in fits]
    return (
        found.keys() == allowed[0].keys()
        and found["report.html"].rstrip().endswith(b"</html>")
        and all(found[name] in [files[name] for files in allowed] for name in found if name != "report.html")
    )


def finished_lines(table):
    """The lines of a table that were written to their end, without the header and without fits that failed.

    The last field is the error; what failed is run again.
    """
    if not table.exists():
        return []
    whole = table.read_bytes().decode()
    return [line for line in whole[: whole.rfind("\n") + 1].splitlines()[1:] if line.endswith(",")]


def without_seconds(table):
    with table.open(newline="") as file:
        return [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(file)]


def count(when):
    """One kill, and when it came: before anything was written, while it was being written, or after; or a full disk."""
    counted["kills"] += when != "full disks"
    counted[when] += 1


def defects(found):
    """Everything that went wrong, counted for the summary."""
    found = list(found)
    counted["defects"] += len(found)
    return found
