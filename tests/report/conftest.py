"""A browser, and reports to look at."""

import os
import shutil
import subprocess

import pytest
from report_helpers import write_reviews, write_shops

from mtclust.app import cli

#: names under which Chromium is installed
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _chromium():
    """Path of the browser; installed by apt-get if ``MTCLUST_INSTALL_CHROMIUM=1`` says so and it can be."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    if os.environ.get("MTCLUST_INSTALL_CHROMIUM") != "1":
        pytest.skip("there is no Chromium; MTCLUST_INSTALL_CHROMIUM=1 installs it (as root, with apt-get)")
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("there is no Chromium, and it cannot be installed without root and apt-get")
    # another worker of the tests may be installing it; without a network, give up soon
    patience = ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::http::Timeout=10", "-o", "Acquire::Retries=0"]
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        try:
            subprocess.run(["apt-get", *patience, *arguments], capture_output=True, text=True, timeout=180, check=True)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"Chromium could not be installed: {error.stderr.strip()[-300:]}")
        except subprocess.TimeoutExpired:
            pytest.skip("Chromium could not be installed: apt-get took too long")
    return shutil.which("chromium") or pytest.skip("Chromium was installed but is not found")


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    path = _chromium()
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def shop_report(tmp_path_factory):
    """Of numbers, a category and dates in three tasks, one of which has a script for a name."""
    home = tmp_path_factory.mktemp("shops")
    data = write_shops(home / "shops.csv")
    arguments = ["fit", str(data), "--task-column", "shop", "--clusters", "3", "--key", "customer", "--show-keys"]
    assert cli.main([*arguments, "--out", str(home / "out"), "--quiet"]) == 0
    return home / "out" / "report.html"


@pytest.fixture(scope="session")
def review_report(tmp_path_factory):
    """Of text whose words, too, look like markup."""
    home = tmp_path_factory.mktemp("reviews")
    data = write_reviews(home / "<b>reviews & more.csv")
    arguments = ["fit", str(data), "--task-column", "site", "--text-column", "review", "--clusters", "2-3"]
    assert cli.main([*arguments, "--out", str(home / "out"), "--quiet"]) == 0
    return home / "out" / "report.html"
