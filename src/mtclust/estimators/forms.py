"""Which form of the problem a fit solves: with kernel matrices (dual) or with explicit features (primal)."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from mtclust.core.kernels import is_precomputed
from mtclust.util.memory import require_kernel_memory

#: up to this many rows kernel matrices are used, if the form is left open; sparse text is clustered exactly for longer,
#: since its Nyström features are an approximation
_SMALL = 700
_SMALL_SPARSE = 1500
FORMS = ("auto", "dual", "primal")
#: fewer rows than this multiple of a sample are not worth one
SPARED = 1.2
#: sparse tables with more columns than this are solved matrix-free
MANY_COLUMNS = 1000


def form_of(estimator: Any, form: str, X: Any) -> str:
    """The form to use: "dual", "primal" or "matrix-free"; checks that the dual one has the memory it needs."""
    if not _is_large(estimator, form, X):
        return "dual"
    wide = sp.issparse(X) and X.shape[1] > MANY_COLUMNS
    # D needs explicit features
    exact = estimator.kernel == "linear" and estimator._method(2) != "features" and estimator.n_components is None
    return "matrix-free" if wide and exact else "primal"


def _is_large(estimator: Any, form: str, X: Any) -> bool:
    n = X.shape[0]
    dual_only = is_precomputed(estimator.kernel) or estimator.solver == "cutting-plane"
    if form == "primal":
        if dual_only:
            raise ValueError(
                'solver_options["form"]="primal" needs explicit rows and solver="exchange"; '
                f"got kernel={estimator.kernel!r} and solver={estimator.solver!r}."
            )
        return True
    limit = _SMALL_SPARSE if sp.issparse(X) else _SMALL
    if form == "auto" and n > limit and not dual_only:
        return True
    way_out = (
        "Use fewer rows."
        if dual_only
        else 'Leave solver_options["form"] at "auto" or set it to "primal", which forms no kernel matrix.'
    )
    require_kernel_memory(n, way_out)
    return False
