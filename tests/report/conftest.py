"""A browser, and reports to look at."""

import os
import shutil
import subprocess

import pytest
from report_helpers import clinics_frame, hospitals_frame, write_reviews, write_shops

import mtclust
from mtclust.app import cli

_QUICK = {"kernel": "linear", "lambda1": 0.05, "lambda2": 0.05, "n_init": 1}

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


class Visit:
    """An open report and everything it said, asked for or did."""

    def __init__(self, browser, path, **settings):
        self.context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | settings))
        self.page = self.context.new_page()
        self.messages, self.requests, self.dialogs = [], [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.page.goto(path.as_uri())

    def _dismiss(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def opacities(self, selector):
        """Of all elements, their ancestors' included, as a set."""
        script = """elements => elements.map(e => {
            let seen = 1;
            for (; e; e = e.parentElement) seen *= Number(getComputedStyle(e).opacity);
            return Math.round(100 * seen) / 100;
        })"""
        return set(self.page.eval_on_selector_all(selector, script))


@pytest.fixture
def visit(browser):
    opened = []

    def open_report(path, **settings):
        # without transitions, so that a colour is what it will be
        opened.append(Visit(browser, path, **({"reduced_motion": "reduce"} | settings)))
        return opened[-1]

    yield open_report
    for one in opened:
        one.context.close()


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


@pytest.fixture(scope="session")
def hospital_report(tmp_path_factory):
    """Of 60 tasks with long names that differ in a number."""
    found = mtclust.cluster(hospitals_frame(), "hospital", 3, **_QUICK, coupling="none")
    return found.report(tmp_path_factory.mktemp("hospitals") / "report.html")


@pytest.fixture(scope="session")
def clinic_report(tmp_path_factory):
    """Of eight clusters, long names of columns, years and dates."""
    found = mtclust.cluster(clinics_frame(), "clinic", 8)
    return found.rename({2: "young and fit"}).report(tmp_path_factory.mktemp("clinics") / "report.html")
