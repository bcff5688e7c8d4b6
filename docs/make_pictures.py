"""Draw the pictures that are committed, from the gallery's scripts: ``python docs/make_pictures.py``."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
#: picture of the README → script that draws it
PICTURES = {"multitask_clustering.png": "plot_digits.py"}


def main() -> None:
    plt.show = lambda *args, **kwargs: None  # the figures are saved below
    for name, script in PICTURES.items():
        plt.close("all")
        runpy.run_path(str(HERE.parent / "examples" / script))
        plt.gcf().savefig(HERE / "images" / name, dpi=110)
        print(f"docs/images/{name}")


if __name__ == "__main__":
    main()
