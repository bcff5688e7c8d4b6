"""Take the pictures of reports that the pages show: ``python docs/report_picture.py``.

``images/report.png`` (README, first page) is of a synthetic table of customers, ``images/tutorial_report.png`` of the
tutorial's patients. Needs Chromium and playwright (the extra ``dev``).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright

from mtclust.app import cli

HERE = Path(__file__).resolve().parent
#: size of the page in a picture
WIDTH, HEIGHT = 1100, 1240
#: what the README shows
COMMAND = "mtclust fit customers.csv --task-column shop --out result"


def customers(seed: int = 0) -> pd.DataFrame:
    """Four kinds of customers of five shops, each kind more common in some: numbers, money, a category, gaps, an id."""
    rng = np.random.default_rng(seed)
    shares = {
        "Berlin": (0.45, 0.25, 0.2, 0.1),
        "Lisbon": (0.25, 0.25, 0.4, 0.1),
        "Madrid": (0.3, 0.4, 0.2, 0.1),
        "Oslo": (0.2, 0.2, 0.25, 0.35),
        "Rome": (0.25, 0.35, 0.3, 0.1),
    }
    kind = np.concatenate([rng.choice(4, 200, p=share) for share in shares.values()])
    channel = np.array([rng.choice(["web", "store", "phone"], p=p) for p in _CHANNELS[kind]])
    frame = pd.DataFrame(
        {
            "customer": [f"C{k}" for k in rng.choice(9000, 1000, replace=False) + 1000],
            "shop": np.repeat(list(shares), 200),
            "age": np.rint(np.array([24, 41, 62, 47])[kind] + rng.normal(0, 4, 1000)),
            "spent": [f"€{x:,.0f}" for x in np.array([420, 1150, 800, 5200])[kind] * rng.lognormal(0, 0.2, 1000)],
            "visits": rng.poisson(np.array([6, 14, 32, 4])[kind]),
            "returned": [f"{x:.0f}%" for x in np.clip(np.array([24, 9, 4, 3])[kind] + rng.normal(0, 3, 1000), 0, 99)],
            "channel": channel,
            "newsletter": rng.choice(["yes", "no"], 1000),
        }
    )
    frame.loc[rng.random(1000) < 0.04, "age"] = np.nan
    return frame


_CHANNELS = np.array([[0.85, 0.1, 0.05], [0.5, 0.4, 0.1], [0.1, 0.85, 0.05], [0.2, 0.2, 0.6]])


def tutorial() -> str:
    """Write the tutorial's table and return its command."""
    text = (HERE / "tutorial.md").read_text(encoding="utf-8")
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], {})  # noqa: S102  the page's own code
    return re.search(r"\$ (mtclust fit .*?--out result)\n", text, re.DOTALL)[1].replace("\\\n", "")


def take(command: str, picture: Path) -> None:
    """Run a command and take the picture of its report."""
    if cli.main([*shlex.split(command)[1:], "--overwrite", "--quiet"]) != 0:
        raise SystemExit(f"{command} failed")
    report = Path("result/report.html")
    # the page's own command is the one that the text shows
    report.write_text(report.read_text(encoding="utf-8").replace(" --overwrite --quiet", ""), encoding="utf-8")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.screenshot(path=picture)
        browser.close()
    print(f"docs/images/{picture.name}")


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        customers().to_csv("customers.csv", index=False)
        take(COMMAND, HERE / "images" / "report.png")
        take(tutorial(), HERE / "images" / "tutorial_report.png")
        os.chdir(HERE)


if __name__ == "__main__":
    main()
