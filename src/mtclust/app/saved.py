"""Models from files: those of tables come back as what :func:`mtclust.cluster` returned."""

from __future__ import annotations

import os
from typing import Any

from mtclust.persistence import models


def load(path: str | os.PathLike[str], *, return_extra: bool = False) -> Any:
    """Read a model or a clustering that was saved; nothing in the file is executed, whoever made it.

    Parameters
    ----------
    path : str or path
    return_extra : bool, default=False
        Return the model itself and what was saved as ``extra`` (None if nothing was).

    Returns
    -------
    model : Clustering, DMTRC, DMTFC or DSTC
        What was saved: a clustering of a table, also one by ``mtclust fit``, or an estimator. It predicts, clusters new
        tasks and shows itself as the one that was saved; scores may differ by rounding.
    extra : dict or None
        Only with ``return_extra=True``.

    Raises
    ------
    mtclust.exceptions.ModelFileError
        If the file is no saved model, is damaged, or was written in a format that this version does not know.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mtclust
    >>> import pandas as pd
    >>> prices = pd.DataFrame({"shop": ["a", "a", "a", "b", "b", "b"], "price": [1.0, 1.2, 9.0, 2.0, 9.9, 9.5]})
    >>> found = mtclust.cluster(prices, task="shop", n_clusters=2, kernel="linear", sizes=1.0)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     found.save(Path(directory) / "prices.mtclust")
    ...     loaded = mtclust.load(Path(directory) / "prices.mtclust")
    >>> loaded.predict(pd.DataFrame({"shop": ["a", "b"], "price": [8.0, 1.5]})).tolist()
    [1, 0]
    """
    model, extra = models.load(path, return_extra=True)
    if return_extra:
        return model, extra
    if isinstance(extra, dict) and isinstance(extra.get("clustering"), dict):
        from mtclust.app.clustering import Clustering

        return Clustering.of_saved(model, extra)
    return model
