"""The page of the scale benchmark: targets first, then every figure beside its NMI."""

from __future__ import annotations

import platform
from pathlib import Path

import numba
import numpy as np
import scipy
import sklearn

import mtclust
from _scale_data import Cell
from _scale_methods import GEMCLUS, LAMBDA, METHODS, OURS, OURS_ONCE, OURS_RBF, REFERENCE, SPECTRAL, WIDTH, has_gemclus
from _scale_plot import GROWTH_METHODS, curve, slope
from _scale_summary import Row, mean_of, median_of, numbers, of_cell, plain, ratio, seconds, table
from _scale_targets import LARGE_ROWS, starts_table, targets_table
from _tables import write_markdown

_SIZES = ("family", "rows", "tasks")
_MANY = "KMeans (n_init=10)"


def write_report(rows: list[Row], growth: dict[str, list[Cell]], path: Path) -> None:
    header, lines = targets_table(rows, growth)
    sections = [
        "Ratios are of CPU seconds, taken within one draw of the data and their median over draws; of several sizes "
        "the worst is shown. Extra memory is the peak above the data.",
        "## Time and NMI", grid_table(rows), quality(rows), _settings(),
        f"## Time relative to {REFERENCE}", ratio_table(rows),
        "Passes: time of a fit in units of one pass ΦW over the same rows.",
        "## Peak memory above the data", memory_table(rows),
        "MB. Peak resident memory less what is resident before the fit, when the data are read and a small fit has "
        "loaded libraries and compiled code. The column “nothing” is the floor: what is shown where no fit is run. "
        "One run each, in a process of its own.",
        "## Growth", growth_table(rows, growth),
        f"Slopes of log CPU seconds; in brackets, for rows, from {LARGE_ROWS:,} on. See growth.svg.",
        "## Nyström features against the exact kernel", nystroem_table(rows),
        "DMTRC with an RBF kernel. Error: Frobenius norm of ΦΦᵀ − K relative to K. J: of the labels and Ω found, under "
        "the exact kernel, above the exact form's (which is a local search too: negative means that it was beaten). "
        "Means over draws; median seconds.",
        "## First use", starts_table(rows),
        "Cold: nothing compiled yet (an empty NUMBA_CACHE_DIR). Warm: compiled code left by an earlier process. Fits "
        "of DMTRC with default n_init, 3 tasks; medians; the target is judged on CPU seconds.",
        "## Whole text corpora", text_table(rows),
        "Sparse tf-idf, never made dense; numbers of clusters and balanced sizes given, λ and coupling chosen by the "
        "model. k-means task by task on the same rows. Medians; each in a process of its own.",
        _versions(),
    ]  # fmt: skip
    write_markdown(path, header, lines, "\n\n".join(section for section in sections if section))


def _cells(rows: list[Row], part: str) -> list[Cell]:
    """Sizes that were measured, small to large."""
    found = {
        Cell(int(row["rows"]), int(row["tasks"]), int(row["features"]), int(row["clusters"]), row["family"])
        for row in rows
        if row["part"] == part
    }
    return sorted(found, key=lambda cell: (cell.family != "isotropic", cell.rows, cell.tasks))


def _size(cell: Cell) -> list[str]:
    return [cell.family, f"{cell.rows:,}", str(cell.tasks)]


def _measured(rows: list[Row], part: str, names: list[str]) -> list[str]:
    there = {row["method"] for row in rows if row["part"] == part}
    return [name for name in names if name in there]


def grid_table(rows: list[Row]) -> str:
    """Median CPU seconds and mean NMI of every method on every size."""
    names = _measured(rows, "grid", list(METHODS))
    lines = []
    for cell in _cells(rows, "grid"):
        line = _size(cell)
        for name in names:
            mine = of_cell(rows, "grid", cell, name)
            failed = next((row["detail"].split(":")[0] for row in mine if row["cpu_seconds"] == ""), "")
            score = f"{seconds(median_of(mine))} ({plain(mean_of(mine), 3)})" if len(numbers(mine)) else failed or "–"
            line.append(score)
        lines.append([*line, str(len(of_cell(rows, "grid", cell, REFERENCE)))])
    return table([*_SIZES, *names, "draws"], lines)


def ratio_table(rows: list[Row]) -> str:
    """Ours over one run of k-means, CPU and wall; passes over the data."""
    lines = []
    for cell in _cells(rows, "grid"):
        line = [*_size(cell), *(plain(ratio(rows, "grid", cell, name, REFERENCE)) for name in OURS)]
        line.append(plain(ratio(rows, "grid", cell, OURS_ONCE[0], REFERENCE, "wall_seconds")))
        line.append(plain(ratio(rows, "grid", cell, OURS_ONCE[0], _MANY)))
        line.append(plain(ratio(rows, "grid", cell, OURS_ONCE[0], SPECTRAL), 3))
        line.append(plain(ratio(rows, "grid", cell, OURS_RBF[0], SPECTRAL), 3))
        line += [plain(ratio(rows, "grid", cell, name, "one pass"), 0) for name in (OURS_ONCE[0], REFERENCE)]
        lines.append([*line, seconds(median_of(of_cell(rows, "grid", cell, "one pass")))])
    once = OURS_ONCE[0]
    header = [
        *_SIZES,
        *OURS,
        f"{once}, wall",
        f"{once} × {_MANY}",
        f"{once} × {SPECTRAL}",
        f"{OURS_RBF[0]} × {SPECTRAL}",
    ]
    return table([*header, f"passes of {once}", f"passes of {REFERENCE}", "one pass"], lines)


def quality(rows: list[Row]) -> str:
    """Who is closer to the classes, in figures, and why."""
    sentences = []
    for family in ("isotropic", "elongated"):
        differences = []
        for cell in _cells(rows, "grid"):
            if cell.family == family:
                ours, peer = (mean_of(of_cell(rows, "grid", cell, name)) for name in ("DMTRC", _MANY))
                differences.append(ours - peer)
        if differences:
            better = sum(d < 0 for d in differences)
            sentences.append(
                f"{family.capitalize()} clusters: {_MANY} has a higher NMI than DMTRC in {better} of "
                f"{len(differences)} sizes; DMTRC − k-means {np.mean(differences):+.3f} on average, from "
                f"{min(differences):+.3f} to {max(differences):+.3f}."
            )
    reason = (
        "Isotropic mixtures of equal variance are what k-means assumes: it is the right model by construction, and "
        "with rows enough the discriminative models, which regress label codes on the features, can at best come "
        "close; with few rows per task, what the tasks share can make up for it. At the same λ₂ the penalty of the "
        "coupled methods grows with the number of tasks, since Ω and D have trace 1; λ is fixed here, not chosen. In "
        "the elongated family one direction, shared by all clusters, has three times the spread and says nothing "
        "about the clusters (a family chosen to show the other side): k-means cuts along it, a regression can ignore "
        "it. A Gaussian mixture with full covariances is the right model of both families if it has rows enough. Our "
        "methods are told that clusters are equally large, which is true here; the others are not told, and have no "
        "such argument."
    )
    return " ".join([*sentences, reason])


def memory_table(rows: list[Row]) -> str:
    names = _measured(rows, "memory", ["nothing", *METHODS])
    lines = []
    for cell in _cells(rows, "memory"):
        found = [median_of(of_cell(rows, "memory", cell, name), "extra_mb") for name in names]
        lines.append([*_size(cell), f"{cell.rows * cell.features * 8 / 1e6:.1f}", *(plain(mb, 1) for mb in found)])
    return table([*_SIZES, "data", *names], lines)


def growth_table(rows: list[Row], growth: dict[str, list[Cell]]) -> str:
    lines = []
    for axis, cells in growth.items():
        line = [f"{axis}: {', '.join(f'{getattr(cell, axis):,}' for cell in cells)}"]
        for method in GROWTH_METHODS:
            sizes, times = curve(rows, cells, axis, method)
            words = plain(slope(sizes, times))
            if axis == "rows":
                words += f" ({plain(slope(sizes, times, LARGE_ROWS))})"
            line.append(f"{words}; {' '.join(seconds(t) for t in times[[0, -1]])}" if len(times) else "–")
        lines.append(line)
    return table(["sizes", *(f"{method}: slope; first and last" for method in GROWTH_METHODS)], lines)


def nystroem_table(rows: list[Row]) -> str:
    names = list(dict.fromkeys(row["method"] for row in rows if row["part"] == "nystroem"))
    lines = []
    for cell in _cells(rows, "nystroem"):
        exact = numbers(of_cell(rows, "nystroem", cell, "exact"), "objective")
        for name in names:
            mine = of_cell(rows, "nystroem", cell, name)
            error = plain(mean_of(mine, "detail"), 4) if name != "exact" else "0"
            above = float(np.mean(numbers(mine, "objective") / exact - 1)) * 100
            line = [f"{cell.rows:,}", str(cell.tasks), name, error, f"{above:+.2f} %", plain(mean_of(mine), 3)]
            lines.append([*line, seconds(median_of(mine)), str(len(mine))])
    return table(["rows", "tasks", "features", "error", "J above exact", "NMI", "time", "draws"], lines)


def text_table(rows: list[Row]) -> str:
    lines, text = [], [row for row in rows if row["part"] == "text"]
    for corpus, method in dict.fromkeys((row["family"], row["method"]) for row in text):
        mine = [row for row in text if (row["family"], row["method"]) == (corpus, method)]
        times = [seconds(median_of(mine, column)) for column in ("cpu_seconds", "wall_seconds")]
        scores = [plain(median_of(mine, "nmi"), 3), plain(median_of(mine, "extra_mb"), 0)]
        lines.append([corpus, method, *times, *scores, mine[0]["detail"], str(len(mine))])
    if not lines:
        return "Not measured: needs MTCLUST_DATA."
    return table(["corpus", "method", "CPU", "wall", "NMI", "extra MB", "about", "runs"], lines)


def _settings() -> str:
    about_gemclus = "" if has_gemclus() else f" {GEMCLUS} was not run: gemclus is not installed (optional, GPL)."
    return (
        "CPU seconds, one thread, median over draws (seeds 0, 1, …; also random_state); in brackets NMI within a "
        f"task, mean over tasks and draws. d = 20, C = 5. Ours: linear kernel, λ₁ = λ₂ = {LAMBDA:g}, balanced sizes, "
        f"full coupling (DMTRC), primal form, n_init as said or the default; RBF: width {WIDTH:g}, Nyström features "
        f"of default rank. The others task by task, times summed; {SPECTRAL} with an RBF affinity of the same "
        f"width.{about_gemclus}"
    )


def _versions() -> str:
    return (
        f"mtclust {mtclust.__version__}, scikit-learn {sklearn.__version__}, numpy {np.__version__}, scipy "
        f"{scipy.__version__}, numba {numba.__version__}, Python {platform.python_version()}, {platform.machine()}."
    )
