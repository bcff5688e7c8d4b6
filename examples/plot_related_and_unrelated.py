"""
Related and unrelated tasks
===========================

:func:`~mtclust.datasets.make_related_tasks` makes tasks whose clusters are related as a chosen covariance Ω says.
Here are four such relationships, and what :class:`~mtclust.DMTRC` finds without being told.
"""

# %%
# Five tasks each: all related, two groups, one outlier, and nothing in common at all.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from mtclust import DMTRC
from mtclust.datasets import make_related_tasks
from mtclust.exceptions import UncoupledWarning
from mtclust.metrics import macro_nmi
from mtclust.plotting import plot_task_relationship

groups = np.kron([[1.0, 0.0], [0.0, 1.0]], np.ones((3, 3)))[:5, :5]
relationships = {"all related": "related", "two groups": groups, "one outlier": "outlier", "unrelated": "unrelated"}

# %%
# The default, ``coupling="auto"``, refuses to couple tasks whose own rows contradict the coupled labels, and says so by
# a warning; its verdict is printed below each diagram. The diagrams show what is learned if the tasks are coupled
# whatever they look like.
figure, axes = plt.subplots(2, 4, figsize=(13, 6.8), layout="constrained")
for (title, omega), (top, bottom) in zip(relationships.items(), axes.T):
    made = make_related_tasks(5, task_covariance=omega, n_samples=90, n_features=12, random_state=0)
    X, y, tasks = made.X_y_tasks
    settings = {"n_clusters": 3, "kernel": "linear", "sizes": "balanced", "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)  # the verdict is shown in the figure
        auto = DMTRC(**settings).fit(X, tasks=tasks)
    coupled = auto.selection_["coupling"]["decision"] == "full"
    full = auto if coupled else DMTRC(**settings, coupling="full").fit(X, tasks=tasks)

    top.imshow(made.task_covariance, cmap="RdBu", vmin=-1, vmax=1)
    top.set(title=f"{title}: chosen Ω", xticks=range(5), yticks=range(5))
    top.tick_params(length=0)
    plot_task_relationship(full, bottom)
    bottom.set_title("learned correlation")
    scores = {
        "alone": full.single_task_labels_,
        "coupled": full.labels_,
        "auto": auto.labels_,
    }
    verdict = "couples" if coupled else "keeps them apart"
    lines = ", ".join(f"{name} {macro_nmi(y, labels, tasks):.2f}" for name, labels in scores.items())
    bottom.set_xlabel(f'NMI: {lines}\n"auto" {verdict}', fontsize=9.5)
plt.show()

# %%
# The relationship is found in all four cases, from the rows alone. Whether coupling pays is another matter. These
# Gaussian clusters are found no worse by each task alone, and tasks that have nothing in common lose when they
# cooperate, by less than their own rows can show: that is why ``single_task_labels_`` always come along. If the learned
# correlations are near zero, take those. The gallery's first example has tasks that do gain.
