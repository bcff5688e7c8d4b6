r"""How likely a row belongs to each cluster: scores turned into probabilities.

.. math:: p_c(x) = \frac{\exp(f_c(x)/T)}{\sum_k \exp(f_k(x)/T)}

One temperature T per model, the one under which the labels are most likely given scores from which each row was left
out: the fitted scores of a row are pulled towards its own label and would make every row look sure. A cluster that a
task does not have has the score −∞ and the probability 0.

The temperature is calibrated to the clusters that were found. How far these are the groups a reader has in mind no
score of the same rows can tell: where clusters cut across these groups, probabilities are too high.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

Array = NDArray[np.float64]

#: the temperature is sought within these powers of e times the spread of the scores
_LOWEST, _HIGHEST = -8.0, 8.0
#: rows that fit any label of their own tell nothing when they are left out: their scores count as 0
SMALLEST_SHARE_LEFT = 1e-6


def probabilities(scores: Array, temperature: float) -> Array:
    """Softmax of scores over a temperature, row by row.

    Examples
    --------
    >>> import numpy as np
    >>> probabilities(np.array([[1.0, 1.0, -np.inf], [2.0, 0.0, 0.0]]), 0.5).round(2).tolist()
    [[0.5, 0.5, 0.0], [0.96, 0.02, 0.02]]
    """
    return np.asarray(softmax(scores / temperature, axis=1))


def best_temperature(scores: Array, labels: NDArray[np.int64]) -> float:
    """The temperature under which labels are most likely, given scores of rows that were left out.

    One row in as many as there are counts as wrong (label smoothing): without that clusters without any overlap would
    ask for T = 0, and rows would be called certain that were merely never seen to be wrong.

    Examples
    --------
    >>> import numpy as np
    >>> clear, vague = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.9], [0.9, 1.0]])
    >>> scores, labels = np.tile(clear, (50, 1)), np.tile([0, 1], 50)
    >>> bool(best_temperature(scores, labels) < best_temperature(scores, np.roll(labels, 1)))
    True
    """
    finite = np.isfinite(scores)
    spread = float(np.std(scores[finite])) if finite.any() else 0.0
    n, C = scores.shape
    if not spread > 0 or C < 2:
        return 1.0
    wrong = 1.0 / (n + C)
    others = np.maximum(finite.sum(axis=1) - 1, 1)[:, None]
    target = np.where(finite, wrong / others, 0.0)
    target[np.arange(n), labels] = 1.0 - wrong
    # only the target of a row's own cluster can meet the score −∞, where labels obey sizes that a model does not know
    target = np.where(finite, target, 0.0)

    def unlikely(power: float) -> float:
        logarithms = log_softmax(scores / (spread * np.exp(power)), axis=1)
        return -float(np.sum(target * np.where(finite, logarithms, 0.0)))

    return spread * float(np.exp(minimize_scalar(unlikely, bounds=(_LOWEST, _HIGHEST), method="bounded").x))


def left_out(targets: Array, fitted: Array, leverage: Array, mean: Array | None, n_rows: int) -> Array:
    """Scores of rows that were left out, from what a ridge regression on all rows of a task fitted to its targets.

    Leaving a row out divides its residual by 1 − h, h its leverage. Where features are centred within the task the
    mean ``mean`` of the targets is fitted as well, the divisor is 1 − h − 1/n, and a score is the prediction minus the
    mean target of the other rows.
    """
    share = 1.0 - leverage - (0.0 if mean is None else 1.0 / n_rows)
    if mean is not None:
        targets = targets - mean
    residuals = (targets - fitted) / np.maximum(share, SMALLEST_SHARE_LEFT)[:, None]
    own = targets if mean is None or n_rows == 1 else targets * (n_rows / (n_rows - 1.0))
    return np.where(share[:, None] > SMALLEST_SHARE_LEFT, own - residuals, 0.0)
