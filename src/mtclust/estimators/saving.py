"""``save`` of the estimators."""

from __future__ import annotations

import os
from typing import Any


class SavingMixin:
    """Adds :meth:`save`."""

    def save(self, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that :func:`mtclust.load` reads.

        The file holds arrays and JSON, no code. It holds the rows of ``fit`` where ``predict`` or ``fit_task`` need
        them: whoever gets the file gets these data. An earlier file of that name is replaced, but only once the new one
        is complete.

        Parameters
        ----------
        path : str or path
            Any name; no ending is added.
        extra : dict, optional
            Anything small that belongs to the model (numbers, strings, lists, tuples, dicts, arrays);
            ``mtclust.load(path, return_extra=True)`` gives it back.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import mtclust
        >>> model = mtclust.DSTC(2, kernel="linear", random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save(Path(directory) / "model")
        ...     mtclust.load(Path(directory) / "model").predict([[0.2], [4.9]])
        array([0, 1])
        """
        # imported here: the format knows the estimators
        from mtclust.persistence import save

        save(self, path, extra=extra)
