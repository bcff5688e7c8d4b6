"""
When coupling helps, and when it hurts
======================================

This figure is drawn from the committed results of ``python benchmarks/without_labels.py``: eighteen data sets,
several draws of each, nothing chosen with labels. For each it compares every task alone (DSTC), all tasks coupled
whatever they look like, and the default, ``coupling="auto"``.
"""

# %%
# One row per data set, draw and rule.
import csv
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

here = Path.cwd()
results = next(folder / "results" for folder in (here, *here.parents) if (folder / "results").is_dir())
scores = defaultdict(lambda: defaultdict(dict))
with open(results / "without_labels" / "runs.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        if row["rule"] in ("DSTC", "full", "auto"):
            scores[row["dataset"]][row["rule"]][row["draw"]] = float(row["nmi"])

# %%
# The change of NMI against clustering each task alone; bars are standard errors over paired draws.


def gain(dataset, rule):
    draws = scores[dataset]["DSTC"].keys() & scores[dataset][rule].keys()
    difference = np.array([scores[dataset][rule][draw] - scores[dataset]["DSTC"][draw] for draw in sorted(draws)])
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else 0.0
    return difference.mean(), error, len(difference)


names = sorted(scores, key=lambda name: gain(name, "full")[0])
figure, ax = plt.subplots(figsize=(10, 7), layout="constrained")
for place, name in enumerate(names):
    full, error, n_draws = gain(name, "full")
    colour = "#0072B2" if full >= 0 else "#D55E00"
    ax.barh(place, full, color=colour, alpha=0.35, height=0.7)
    ax.errorbar(full, place, xerr=error, color=colour, capsize=2, linewidth=1.2)
    ax.plot(gain(name, "auto")[0], place, "D", color="black", markersize=5)
ax.plot([], [], "D", color="black", markersize=5, label='coupling="auto"')
ax.barh(0, 0, color="#0072B2", alpha=0.35, label='coupling="full" helps')
ax.barh(0, 0, color="#D55E00", alpha=0.35, label='coupling="full" hurts')
ax.axvline(0, color="0.3", linewidth=0.9)
ax.set_yticks(range(len(names)), [f"{name}  ({gain(name, 'full')[2]})" for name in names])
ax.tick_params(axis="y", length=0)
ax.set_xlabel("NMI gained over clustering each task alone; in brackets the number of draws")
ax.spines[["top", "right", "left"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# Tasks that hold the same kinds of things and too few rows of each gain most. Documents from different newsgroups share
# little but style, and coupling them costs; unrelated synthetic tasks lose as well. The default refuses in both cases,
# and ends where clustering each task alone would have ended.
for name in reversed(names):
    print(f"{name:34} full {gain(name, 'full')[0]:+.3f}   auto {gain(name, 'auto')[0]:+.3f}")
