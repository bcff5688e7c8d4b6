"""
A new task, and a saved model
=============================

A model of four tasks is saved and loaded elsewhere. There, a fifth task turns up, with 25 rows so far.
:meth:`~mtclust.DMTRC.fit_task` clusters them with what the others know, without touching their labels, says which of
them the new task resembles, and gives a model for the rows that come later.
"""

# %%
# Two tasks of the digits 0, 3, 6, 8, 9 and two of 1, 2, 4, 5, 7.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mtclust
from mtclust import DMTRC, DSTC
from mtclust.datasets import load_digits_tasks
from mtclust.metrics import nmi

drawn = load_digits_tasks((0, 3, 6, 8, 9), unrelated=(1, 2, 4, 5, 7), n_tasks=3, rows_per_class=20)
X, y, tasks = drawn.X_y_tasks
known = np.isin(tasks, [0, 1, 3, 4])
names = np.array(["north", "south", "", "east", "west", ""])
model = DMTRC(n_clusters=5, sizes="balanced", random_state=0).fit(X[known], tasks=names[tasks[known]])
with tempfile.TemporaryDirectory() as directory:
    model.save(Path(directory) / "digits.mtclust")
    loaded = mtclust.load(Path(directory) / "digits.mtclust")
print(loaded)

# %%
# Task 2 was left out: five rows of each digit are all that the new place has so far; the rest comes later.
left_out = np.flatnonzero(tasks == 2)
first = np.concatenate([left_out[y[left_out] == digit][:5] for digit in (0, 3, 6, 8, 9)])
later = np.setdiff1d(left_out, first)
new = loaded.fit_task(X[first], sizes="balanced")
alone = DSTC(n_clusters=5, sizes="balanced", random_state=0).fit(X[first])
scores = {
    "its 25 rows\nalone": nmi(y[first], alone.labels_),
    "its 25 rows\nwith fit_task": nmi(y[first], new.labels_),
    "75 later rows\nalone": nmi(y[later], alone.predict(X[later])),
    "75 later rows\nwith fit_task": nmi(y[later], new.predict(X[later])),
}
for name, score in scores.items():
    print(f"{name:28}".replace("\n", " "), f"{score:.2f}")

# %%
# ``task_correlation_`` of the new task: it belongs to north and south, and ids mean what they mean there.
figure, (bars, related, images) = plt.subplots(
    1, 3, figsize=(13, 3.9), layout="constrained", width_ratios=(1.3, 1, 1.2)
)
bars.bar(scores.keys(), scores.values(), color=["0.7", "#0072B2"] * 2, width=0.7)
for place, score in enumerate(scores.values()):
    bars.text(place, score + 0.015, f"{score:.2f}", ha="center")
bars.set(title="NMI of the new task", ylim=(0, 1.08))
bars.tick_params(axis="x", labelsize=8.5, length=0)
related.barh(loaded.tasks_, new.task_correlation_[:-1], color="#0072B2", height=0.6)
related.set(title="correlation with the known tasks", xlim=(-0.1, 1))
related.axvline(0, color="0.5", linewidth=0.8)
pictures = np.zeros((2, 5, 10, 10))  # 8 × 8 images with a margin
north = known & (names[tasks] == "north")
for cluster in range(5):
    of_north = model.labels_[names[tasks[known]] == "north"] == cluster
    pictures[0, cluster, 1:9, 1:9] = X[north][of_north].mean(axis=0).reshape(8, 8)
    pictures[1, cluster, 1:9, 1:9] = X[first][new.labels_ == cluster].mean(axis=0).reshape(8, 8)
images.imshow(np.block([list(line) for line in pictures]), cmap="gray_r")
images.set_xticks(np.arange(5) * 10 + 4.5, range(5))
images.set_yticks([4.5, 14.5], ["north", "new"])
images.set(title="mean image per cluster id")
images.tick_params(length=0)
for ax in (bars, related):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
