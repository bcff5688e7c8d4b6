"""
What multitask clustering gives
===============================

Six small tables of handwritten digits. Three of them hold the digits 0, 3, 6, 8 and 9, the other three 1, 2, 4, 5 and
7; nobody tells the method which, nor what a digit is. Each table is too small to be clustered well alone. Clustered
together, related tables help each other, unrelated ones are left alone, and cluster ids mean the same in all of them.
"""

# %%
# 60 images per task. The digits themselves (``y``) are used only to say how good the result is. The method is told that
# there are five clusters of equal size in each task.
import matplotlib.pyplot as plt
import numpy as np

from mtclust import DMTRC
from mtclust.datasets import load_digits_tasks
from mtclust.metrics import macro_nmi
from mtclust.plotting import plot_task_relationship

drawn = load_digits_tasks((0, 3, 6, 8, 9), unrelated=(1, 2, 4, 5, 7), n_tasks=3, rows_per_class=12)
X, y, tasks = drawn.X_y_tasks
model = DMTRC(n_clusters=5, sizes="balanced", random_state=0).fit(X, tasks=tasks)

# %%
# One fit gives both results: ``labels_``, all tasks together, and ``single_task_labels_``, each task alone. NMI is 1
# for a perfect clustering and 0 for a random one.
together = macro_nmi(y, model.labels_, tasks)
alone = macro_nmi(y, model.single_task_labels_, tasks)
print(f"NMI, each task alone: {alone:.2f}, together: {together:.2f}")
print(model.selection_["coupling"]["reason"])

# %%
# The mean image of every cluster, one line per task, with the share of rows that show the cluster's most frequent
# digit. Alone, some clusters mix two digits (orange). On the right, how the tasks are related: the larger the square,
# the closer. The two groups were found from the images alone.


def draw_clusters(axes, labels, title):
    for task, line in enumerate(axes):
        for cluster, ax in enumerate(line):
            rows = (tasks == task) & (labels == cluster)
            ax.imshow(X[rows].mean(axis=0).reshape(8, 8), cmap="gray_r")
            purity = np.bincount(y[rows]).max() / rows.sum()
            colour = "#D55E00" if purity < 0.8 else "0.45"
            ax.set_xlabel(f"{purity:.0%}", fontsize=8, labelpad=1.5, color=colour)
            ax.set(xticks=[], yticks=[])
            for spine in ax.spines.values():
                spine.set(color=colour, linewidth=1.8 if purity < 0.8 else 0.6)
        line[0].set_ylabel(f"task {task}", fontsize=9)
    axes[0, axes.shape[1] // 2].set_title(title, fontsize=12, pad=9)


figure = plt.figure(figsize=(13, 5.4), layout="constrained")
left, middle, right = figure.subfigures(1, 3, width_ratios=(1, 1, 0.9), wspace=0.04)
draw_clusters(left.subplots(6, 5), model.single_task_labels_, f"each task alone: NMI {alone:.2f}")
draw_clusters(middle.subplots(6, 5), model.labels_, f"all tasks together: NMI {together:.2f}")
ax = plot_task_relationship(model, right.subplots())
ax.set_title("and how the tasks are related", fontsize=12, pad=9)
plt.show()

# %%
# This is one draw of the images; ``python -m paper reproduce pendigits`` averages over many.
# What was chosen, and why:
print(model.selection_.coupling.reason)
print(model.selection_.kernel, model.selection_.reason, sep=": ")
