"""
Choosing the number of clusters
===============================

How many clusters? :func:`~mtclust.selection.select_n_clusters` compares what every number of clusters explains with
what it explains in rows that have the same columns and correlations, but no clusters. It also says where half-samples
do not agree, and whether there are clusters at all.
"""

# %%
# Three tasks of five digits.
import matplotlib.pyplot as plt

from mtclust import DMTRC
from mtclust.datasets import load_digits_tasks, make_related_tasks
from mtclust.selection import select_n_clusters

X, _, tasks = load_digits_tasks((0, 3, 6, 8, 9), rows_per_class=10).X_y_tasks
estimator = DMTRC(random_state=0)
digits = select_n_clusters(estimator, X, tasks=tasks, candidates=range(2, 8))
print(digits.reason)

# %%
# The same on generated tasks with three clusters that overlap a good deal, and on noise without any clusters. There the
# gap stays near 0: some number always has the largest one, but it is a tiny one.
X, _, tasks = make_related_tasks(3, n_samples=60, separation=4.0, random_state=0).X_y_tasks
linear = DMTRC(kernel="linear", random_state=0)
three = select_n_clusters(linear, X, tasks=tasks, candidates=range(2, 6))
X, _, tasks = make_related_tasks(3, n_samples=60, separation=0.0, random_state=0).X_y_tasks
nothing = select_n_clusters(linear, X, tasks=tasks, candidates=range(2, 6))
print(f"in noise: {nothing.structure}")
largest = [max(choice.gaps.values()) for choice in (digits, three, nothing)]
print("largest gap: {:.3f} (digits), {:.3f} (three clusters), {:.3f}".format(*largest))

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
titles = ("five digits", "three overlapping clusters", "no clusters")
for ax, choice, title in zip(axes, (digits, three, nothing), titles):
    ax.plot(list(choice.gaps), list(choice.gaps.values()), "o-")
    ax.axvline(choice.n_clusters, color="#D55E00", linewidth=0.8, linestyle=":")
    ax.set_xticks(list(choice.gaps))
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("gap to rows without clusters")
    ax.set_title(f"{title}\nlargest gap {max(choice.gaps.values()):.2f}, chosen {choice.n_clusters}")
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# ``DMTRC(n_clusters="auto")`` does this inside ``fit``. The number of clusters is the least certain of all choices;
# look at the curve before trusting it. If the data do not decide, or there are no clusters, ``fit`` warns.
# ``benchmarks/number_of_clusters.py`` says how often it was right on real data.
