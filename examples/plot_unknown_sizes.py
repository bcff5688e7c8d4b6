"""
Unknown cluster sizes
=====================

The paper assumes that the clusters of a task are about equally large. Often they are not. ``sizes="auto"``, the
default, leaves them to the data: labels of equal and of free sizes are candidates, and one score picks among them.
"""

# %%
# Three tasks of digits: the first time with 20 images of each digit, the second time with very different numbers.
import matplotlib.pyplot as plt
import numpy as np

from mtclust import DMTRC
from mtclust.datasets import load_digits_tasks
from mtclust.metrics import macro_nmi

DIGITS = (0, 3, 6, 8, 9)
settings = {"n_clusters": 5}
cases = {"equal sizes": 20, "skewed sizes": (44, 24, 16, 10, 6)}
chosen = {"balanced": "balanced", "auto": "auto"}
fits, scores, data = {}, {}, {}
for case, rows_per_class in cases.items():
    X, y, tasks = load_digits_tasks(DIGITS, rows_per_class=rows_per_class).X_y_tasks
    data[case] = y, tasks
    for name, sizes in chosen.items():
        model = DMTRC(**settings, sizes=sizes).fit(X, tasks=tasks)
        fits[case, name] = model
        scores[case, name] = macro_nmi(y, model.labels_, tasks)
    print(f"{case}: {fits[case, 'auto'].selection_['reason']}")

# %%
# Sizes of the clusters of task 0, by the digit they hold: bars that are each of one colour are a perfect clustering.
# Told that sizes are equal where they are not, the model has to cut large clusters up and fill small ones.
figure, axes = plt.subplots(2, 2, figsize=(11, 6), layout="constrained", sharex=True, sharey="row")
colours = dict(zip(DIGITS, ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")))
for line, case in zip(axes, cases):
    y, tasks = data[case]
    for ax, name in zip(line, chosen):
        labels = fits[case, name].labels_
        below = np.zeros(5)
        order = np.argsort([np.median(y[(tasks == 0) & (labels == c)]) for c in range(5)], kind="stable")
        for digit in DIGITS:
            counts = np.array([np.sum((tasks == 0) & (labels == c) & (y == digit)) for c in order])
            ax.bar(range(5), counts, bottom=below, color=colours[digit], label=f"digit {digit}", width=0.75)
            below += counts
        ax.set_title(f'{case}, sizes="{name}": NMI {scores[case, name]:.2f}', fontsize=11)
        ax.set_xticks(range(5), [f"cluster {c}" for c in order])
        ax.tick_params(length=0)
        ax.spines[["top", "right"]].set_visible(False)
    line[0].set_ylabel("rows of task 0")
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
plt.show()

# %%
# If you know the sizes, give them: a pair of fractions (``sizes=(0.05, 0.5)``) or a table per task and cluster.
