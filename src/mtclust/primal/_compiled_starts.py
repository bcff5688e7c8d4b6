"""Random starts of a small task, compiled: the exchanges along a path of λ in one call."""

from __future__ import annotations

import numpy as np

from mtclust._compiled import exchange
from mtclust._numba import njit


@njit
def follow(forms, labels, lower, upper, tolerance, state):  # type: ignore[no-untyped-def]
    """Swap and move rows until nothing improves under each M of ``forms`` (p × n × n) in turn; ``labels`` change.

    An exchange must gain this share (``tolerance``) of the mean diagonal. Returns ½⟨Y, MY⟩ of the last M.
    """
    n = forms.shape[1]
    C = len(lower)
    a = C / (C - 1.0)
    P = np.empty((C, n))
    counts = np.zeros(C, dtype=np.int64)
    for j in range(n):
        counts[labels[j]] += 1
    value = 0.0
    for k in range(forms.shape[0]):
        M = forms[k]
        P[:, :] = 0.0
        diagonal = 0.0
        for j in range(n):
            diagonal += M[j, j] / n
            c = labels[j]
            for i in range(n):
                P[c, i] += M[j, i]
        for i in range(n):
            total = 0.0
            for c in range(C):
                total += P[c, i]
            for c in range(C):
                P[c, i] = a * P[c, i] - total / (C - 1.0)
        exchange(M, P, labels, counts, lower, upper, tolerance * diagonal, state)
        value = 0.0
        for j in range(n):
            value += 0.5 * a * P[labels[j], j]  # the codes of a row add up to 0, and so do its entries of P
    return value
