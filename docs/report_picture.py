"""Take the picture of a report that the tutorial shows: ``python docs/report_picture.py REPORT.html PICTURE.png``.

Needs Chromium and playwright (the extra ``dev``).
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

#: size of the page in the picture
WIDTH, HEIGHT = 1100, 1240


def take(report: Path, picture: Path) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
