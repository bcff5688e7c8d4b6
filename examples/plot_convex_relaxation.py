"""
What the convex relaxation does
===============================

The paper solves its clustering problem by replacing the set of allowed labellings with its convex hull. The relaxed
problem is convex, and its optimum is known beforehand: if all clusters have the same size bounds, the mean of any
labelling over all renamings of its clusters is the matrix of zeros. It lies in the hull, it is fitted perfectly by
models that are zero, and it says nothing about clusters.

Cutting planes walk towards that optimum one labelling at a time. This example follows them: from k-means labels, from
random labels, and from the true ones.
"""

# %%
# Three tasks, each with its own rows of the same four digits.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from mtclust import DMTRC
from mtclust.datasets import load_digits_tasks
from mtclust.exceptions import DegenerateSolutionWarning
from mtclust.metrics import macro_nmi

X, digits, tasks = load_digits_tasks((0, 3, 6, 8), rows_per_class=10, seed=0).X_y_tasks
classes = np.unique(digits, return_inverse=True)[1]
settings = {"n_clusters": 4, "kernel": "linear", "lambda1": 2**-6, "lambda2": 2**-6, "sizes": "balanced"}

# %%
# ``init`` and ``max_cuts`` are part of the model. ``history_`` has one entry per cut: the relaxed objective, a lower
# bound, the size of the pools, how much is left of the labels (‖Ỹ‖/‖Y‖), and the labels at that point.
starts = {"k-means": "k-means", "random": "random", "true labels": classes}
fits = {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", DegenerateSolutionWarning)  # shown at the end
    for name, init in starts.items():
        options = {"init": init, "max_cuts": 15, "zero_tol": 0}
        model = DMTRC(**settings, solver="cutting-plane", solver_options=options, coupling="full", random_state=0)
        fits[name] = model.fit(X, tasks=tasks)
default = DMTRC(**settings, coupling="full", random_state=0).fit(X, tasks=tasks)

# %%
# The value falls to zero cut by cut, and the relaxed labels with it. NMI begins near that of the start and is lost on
# the way; from random labels a few cuts are enough for a mixture that is exactly zero, where all rows are tied. Dotted:
# the start alone, which is what a stopped run has to be compared with. Grey: the default solver, on the integer labels
# of the same objective.
figure, (falling, shrinking, agreeing) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for name, model in fits.items():
    cuts = np.arange(len(model.history_))
    falling.semilogy(cuts, [entry["objective"] for entry in model.history_], label=name)
    shrinking.semilogy(cuts, [entry["shrinkage"] for entry in model.history_])
    nmi = [macro_nmi(classes, entry["labels"], tasks) for entry in model.history_]
    (line,) = agreeing.plot(cuts, nmi)
    agreeing.axhline(macro_nmi(classes, model.init_labels_, tasks), color=line.get_color(), linestyle=":")
agreeing.axhline(macro_nmi(classes, default.labels_, tasks), color="0.6", label='solver="exchange"')
falling.set(title="relaxed objective", xlabel="cuts", ylim=(1e-5, None))
shrinking.set(title="|Ỹ| / |Y|", xlabel="cuts", ylim=(1e-3, None))
agreeing.set(title="NMI with the digits", xlabel="cuts", ylim=(0, 1.05))
falling.legend(title="start")
agreeing.legend(loc="lower left")
plt.show()

# %%
# The same in figures; where fewer cuts were needed, after the last one.
print(f"{'start':12} {'start only':>10} {'0 cuts':>8} {'5 cuts':>8} {'10 cuts':>8} {'15 cuts':>8}")
for name, model in fits.items():
    last = len(model.history_) - 1
    scores = [macro_nmi(classes, model.history_[min(k, last)]["labels"], tasks) for k in (0, 5, 10, 15)]
    alone = macro_nmi(classes, model.init_labels_, tasks)
    print(f"{name:12} {alone:10.3f} " + " ".join(f"{score:8.3f}" for score in scores))
print(f"default solver: {macro_nmi(classes, default.labels_, tasks):.3f}")

# %%
# The library says so when it happens.
print(caught[-1].message)
