"""Which form of the problem a fit solves: with kernel matrices (dual) or with explicit features (primal)."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from mtclust.core.kernels import is_precomputed
from mtclust.util.system import require_kernel_memory

#: up to this many rows kernel matrices are used, if the form is left open; sparse text is clustered exactly for longer,
#: since its features are an approximation
_SMALL = 700
_SMALL_SPARSE = 1500
FORMS = ("auto", "dual", "primal")
#: fewer rows than this multiple of a sample are not worth one
SPARED = 1.2


def form_of(estimator: Any, form: str, X: Any) -> str:
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
    way_out = (
        "Use fewer rows."
        if dual_only
        else 'Leave solver_options["form"] at "auto" or set it to "primal", which forms no kernel matrix.'
    )
    require_kernel_memory(n, way_out)
    return "dual"
