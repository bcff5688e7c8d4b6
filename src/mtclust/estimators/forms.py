"""Which form of the problem a fit solves: with kernel matrices (dual) or with explicit features (primal)."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mtclust.core.kernels import is_precomputed
from mtclust.util.memory import bytes_with_kernels, require_memory

#: up to this many rows kernel matrices are used, if the form is left open; sparse text is clustered exactly for longer,
#: since its features are an approximation
_SMALL = 700
_SMALL_SPARSE = 1500
FORMS = ("auto", "dual", "primal")
#: fewer rows than this multiple of a sample are not worth one
SPARED = 1.2


def form_of(estimator: Any, form: str, X: Any, n_tasks: int) -> str:
    """The form to use, "dual" or "primal"; checks that the dual one has the memory it needs."""
    n = X.shape[0]
    dual_only = is_precomputed(estimator.kernel) or estimator.solver == "cutting-plane"
    if form == "primal":
        if dual_only:
            raise ValueError(
                'solver_options["form"]="primal" needs explicit rows and solver="exchange"; '
                f"got kernel={estimator.kernel!r} and solver={estimator.solver!r}."
            )
        return "primal"
    limit = _SMALL_SPARSE if sp.issparse(X) else _SMALL
    if form == "auto" and n > limit and not dual_only:
        return "primal"
    from mtclust.choose.views import candidate_kernels, is_wide

    kernels = len(candidate_kernels(estimator.kernel, estimator.width, is_wide(X)))
    way_out = (
        "Use fewer rows."
        if dual_only
        else 'Leave solver_options["form"] at "auto" or set it to "primal", which forms no kernel matrix.'
    )
    need = bytes_with_kernels(
        n, n_tasks, estimator._method(n_tasks), n_kernels=kernels, rank=_rank(estimator, X),
        sizes_open=isinstance(estimator.sizes, str) and estimator.sizes == "auto",
        chosen_on=_chosen_on(estimator, n, n_tasks, dual_only),
    )  # fmt: skip
    require_memory(need, f"fit with kernel matrices of {n} rows", way_out)
    return "dual"


def _chosen_on(estimator: Any, n: int, n_tasks: int, dual_only: bool) -> int:
    """About how many rows settings are chosen on: all unless sizes are open and there are clearly more."""
    from mtclust.choose.settings import MOST, rows_to_choose_on, sizes_left_open

    number = estimator.n_clusters
    most = rows_to_choose_on(np.full(n_tasks, number)) if isinstance(number, Integral) else MOST
    few = sizes_left_open(estimator) and not dual_only and n > SPARED * most
    return most if few else n


def _rank(estimator: Any, X: Any) -> int:
    """How many features a kernel matrix of these rows has at most."""
    n, d = X.shape
    rank = min(n, d) if isinstance(estimator.kernel, str) and estimator.kernel == "linear" else n
    return rank if estimator.n_components is None else min(rank, estimator.n_components)
