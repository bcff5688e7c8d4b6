"""
When coupling helps, and when it hurts
======================================

Each data set is drawn a few times and clustered by the default, with equal cluster sizes given. One fit holds three
results: every task alone, all tasks coupled whatever they look like, and what ``coupling="auto"`` decided.
"""

# %%
# Small tables of digits, with the same digits in all tasks or in two groups of tasks, and generated tasks whose
# clusters are related, or have nothing in common.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from mtclust import DMTRC
from mtclust.datasets import load_digits_tasks, make_related_tasks
from mtclust.exceptions import UncoupledWarning
from mtclust.metrics import macro_nmi

OTHER_DIGITS = (1, 2, 4, 5, 7)


def generated(kind, seed):
    return make_related_tasks(4, task_covariance=kind, n_samples=60, separation=3.0, random_state=seed)


data_sets = {
    "digits, 3 tasks": lambda seed: load_digits_tasks(rows_per_class=10, seed=seed),
    "digits, 2 × 3 tasks": lambda seed: load_digits_tasks(rows_per_class=8, unrelated=OTHER_DIGITS, seed=seed),
    "generated, related": lambda seed: generated("related", seed),
    "generated, unrelated": lambda seed: generated("unrelated", seed),
}

# %%
# The change of NMI against clustering each task alone, in three draws.
gains = {}
for name, draw in data_sets.items():
    gains[name] = {"full": [], "auto": []}
    for seed in range(3):
        X, y, tasks = draw(seed).X_y_tasks
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UncoupledWarning)  # the decision is drawn below
            n_clusters = len(np.unique(y[tasks == tasks[0]]))
            model = DMTRC(n_clusters, sizes="balanced", random_state=0).fit(X, tasks=tasks)
        alone = macro_nmi(y, model.single_task_labels_, tasks)
        gains[name]["full"].append(macro_nmi(y, model.selection_["coupling"]["coupled_labels"], tasks) - alone)
        gains[name]["auto"].append(macro_nmi(y, model.labels_, tasks) - alone)

figure, ax = plt.subplots(figsize=(10, 3.6), layout="constrained")
for place, (name, found) in enumerate(gains.items()):
    mean = np.mean(found["full"])
    ax.barh(place, mean, color="#0072B2" if mean >= 0 else "#D55E00", alpha=0.35, height=0.7)
    ax.plot(found["full"], [place] * 3, "|", color="0.3", markersize=10)
    ax.plot(np.mean(found["auto"]), place, "D", color="black", markersize=6)
    print(f"{name:22} full {mean:+.3f}   auto {np.mean(found['auto']):+.3f}")
ax.plot([], [], "D", color="black", label='coupling="auto", mean')
ax.plot([], [], "|", color="0.3", markersize=10, label='coupling="full", each draw')
ax.axvline(0, color="0.3", linewidth=0.9)
ax.set_yticks(range(len(gains)), gains)
ax.invert_yaxis()
ax.tick_params(axis="y", length=0)
ax.set_xlabel("NMI gained over clustering each task alone")
ax.spines[["top", "right", "left"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# Tasks that hold the same kinds of things and too few rows of each gain most. Tasks that have nothing in common can
# lose. With sizes given, ``coupling="auto"`` refuses only where the tasks' own rows contradict the coupled labels: a
# small loss does not always show there, and where single tasks are cut neatly but wrongly it refuses what would have
# helped. Compare ``labels_`` with ``single_task_labels_``; use ``coupling="full"`` if you know that the tasks are
# related, and :class:`~mtclust.DSTC` if you know that they are not.
