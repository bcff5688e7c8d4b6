"""
Tasks that share features: DMTFC
================================

Tasks need not have the same clusters to help each other. Here the cluster centres of every task are its own, but in
all tasks only the same 3 of 40 columns matter. :class:`~mtclust.DMTFC` learns the covariance D of the features that
the tasks share, and finds these columns.
"""

# %%
# Eight tasks, three clusters each, 40 columns, of which columns 5, 6 and 7 separate clusters.
import matplotlib.pyplot as plt
import numpy as np

from mtclust import DMTFC, DSTC
from mtclust.metrics import macro_nmi
from mtclust.plotting import plot_feature_covariance

rng = np.random.default_rng(0)
n_tasks, n_clusters, rows, columns, informative = 8, 3, 42, 40, [5, 6, 7]
y = np.tile(np.repeat(np.arange(n_clusters), rows // n_clusters), n_tasks)
tasks = np.repeat([f"site {name}" for name in "ABCDEFGH"], rows)
X = rng.standard_normal((n_tasks * rows, columns))
for task in np.unique(tasks):
    centres = rng.standard_normal((n_clusters, len(informative)))
    centres -= centres.mean(axis=0)
    centres *= 2.0 / np.sqrt(np.mean(centres**2))
    mine = tasks == task
    X[np.ix_(mine, informative)] += centres[y[mine]]

# %%
# λ decides how much is shared. The default is a constant that suits most tables; with many columns and few rows it is
# too small for this model, so several values are tried here.
settings = {"n_clusters": n_clusters, "kernel": "linear", "sizes": "balanced", "random_state": 0}
lambdas = 2.0 ** np.arange(-8, 3, 2)
scores = {"DMTFC: shared features": [], "DSTC: each task alone": []}
for method, values in zip((DMTFC, DSTC), scores.values()):
    for value in lambdas:
        fitted = method(**settings, lambda1=value, lambda2=value).fit(X, tasks=tasks)
        values.append(macro_nmi(y, fitted.labels_, tasks))
shared = DMTFC(**settings, lambda1=0.25, lambda2=0.25).fit(X, tasks=tasks)
automatic = DMTFC(**settings).fit(X, tasks=tasks)
print(f'"auto" takes λ = {automatic.selection_["lambda1"]:g}: NMI {macro_nmi(y, automatic.labels_, tasks):.2f}')

# %%
# Left: the diagonal of D says how much each column is used, over all tasks. Middle: D itself, the columns with the
# largest entries first. Right: what it is worth, against λ; the diamond is the default.
figure, (using, heat, gain) = plt.subplots(1, 3, figsize=(13, 4.1), layout="constrained", width_ratios=(1.2, 1, 1))
diagonal = shared.feature_covariance_.diagonal()
colours = np.where(np.isin(np.arange(columns), informative), "#0072B2", "0.75")
using.bar(range(columns), diagonal, color=colours)
using.set(title="diagonal of D", xlabel="column", ylabel="share of the trace")
plot_feature_covariance(shared, heat, max_features=8)
heat.set_title("D, its eight largest columns")
for (name, values), colour in zip(scores.items(), ("#0072B2", "0.55")):
    gain.semilogx(lambdas, values, "o-", color=colour, label=name)
gain.plot(automatic.selection_["lambda1"], macro_nmi(y, automatic.labels_, tasks), "D", color="#D55E00", label='"auto"')
gain.set(title="NMI", xlabel="λ₁ = λ₂", ylim=(0, 1.03))
gain.legend(frameon=False, loc="lower right")
for ax in (using, gain):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
