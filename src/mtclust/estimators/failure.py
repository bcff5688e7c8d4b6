"""A fit that fails or is interrupted leaves the estimator as it was: unfitted, or fitted as before."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def unchanged_on_failure(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Undo what a method has set on its estimator if it ends with an error, Ctrl-C included."""

    @wraps(fit)
    def wrapped(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(estimator).copy()
        try:
            return fit(estimator, *args, **kwargs)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return wrapped
