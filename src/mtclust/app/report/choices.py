"""What was given or chosen, and with what it was computed."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from mtclust.choose.record import SizesChoice


def method_in_words(model: Any) -> str:
    """The method and what it does."""
    words = {
        "DMTRC": "learns how the tasks are related",
        "DMTFC": "learns which features the tasks share",
        "DSTC": "clusters every task alone and matches the clusters",
    }
    name = type(model).__name__
    return f"{name} ({words[name]}), {kernel_in_words(model)} kernel"


def kernel_in_words(model: Any) -> str:
    """The kernel that was used: the chosen one where it was left open."""
    return str(model.selection_.kernel)


def choices(model: Any) -> list[dict[str, str]]:
    """What was chosen and why."""
    chosen = model.selection_
    number = chosen.get("n_clusters")
    rows = [{"what": "Method", "chosen": method_in_words(model), "why": "given or default"}]
    if number is not None:
        rows.append({"what": "Number of clusters", "chosen": str(number["chosen"]), "why": number["reason"]})
    else:
        rows.append({"what": "Number of clusters", "chosen": str(model.n_clusters_), "why": "given"})
    coupling = chosen.get("coupling")
    if coupling is not None:
        rows.append({"what": "Coupling of the tasks", "chosen": str(coupling["decision"]), "why": coupling["reason"]})
    sizes = chosen.get("sizes")
    if isinstance(sizes, SizesChoice):
        rows.append({"what": "Cluster sizes", "chosen": str(sizes["chosen"]), "why": sizes["reason"]})
    else:
        rows.append({"what": "Cluster sizes", "chosen": str(sizes), "why": "given"})
    if "frame" in chosen:
        rows.append({"what": "Origin", "chosen": str(chosen["center"]), "why": chosen["frame"]})
    rows.append({"what": "Kernel", "chosen": str(chosen["kernel"]), "why": chosen.get("reason", "given")})
    lambdas = f"λ₁ = {setting(chosen['lambda1'])}, λ₂ = {setting(chosen['lambda2'])}"
    why = "a constant for this criterion and kernel" if model.lambda2 == model.lambda1 == "auto" else "given"
    rows.append({"what": "Smoothness", "chosen": lambdas, "why": why})
    meaning = "how well the cluster of a row can be told from the other rows: 1 always, 0 no better than in noise"
    rows.append({"what": "Score", "chosen": f"{model.loo_score_:.2f}".replace("-", "−"), "why": meaning})
    return rows


def cluster_number(model: Any) -> dict[str, Any] | None:
    """Scores of the numbers of clusters that were tried, scaled for a small chart; None where the number was given."""
    chosen = model.selection_.get("n_clusters")
    if chosen is None or len(chosen.gaps) < 2:
        return None
    gaps = chosen.gaps
    top = max(*map(float, gaps.values()), 1e-9)
    return {
        "chosen": int(chosen["chosen"]),
        "bars": [
            {"clusters": int(c), "gap": f"{g:.3f}".replace("-", "−"), "height": max(0.0, float(g)) / top}
            for c, g in sorted(gaps.items(), key=lambda pair: int(pair[0]))
        ],
    }


def setting(value: Any) -> str:
    """A parameter of the model as people write it."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {setting(entry)}" for key, entry in list(value.items())[:10])
    return str(value)


def versions() -> dict[str, str]:
    """What the result may depend on."""
    import numba
    import scipy
    import sklearn

    import mtclust

    return {
        "mtclust": mtclust.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": numba.__version__,
    }
