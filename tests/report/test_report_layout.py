"""The report on paper, on a phone, with many tasks and with many clusters."""

import shutil
import subprocess

import numpy as np
import pytest

#: width of the text on a page, in pixels of CSS: paper minus margins of 14 mm
PAGES = {"A4": round((210 - 28) / 25.4 * 96), "Letter": round((216 - 28) / 25.4 * 96)}
REPORTS = ["shop_report", "review_report", "hospital_report", "clinic_report"]
#: words of table cells that stand on more than one line; a name may be parted after an underscore or a hyphen
BROKEN_WORDS = """() => {
    const broken = [];
    for (const cell of document.querySelectorAll("th, td")) {
        if (!cell.checkVisibility()) continue;
        const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            for (const word of node.textContent.matchAll(/[\\p{L}\\p{N}]+/gu)) {
                const range = document.createRange();
                range.setStart(node, word.index);
                range.setEnd(node, word.index + word[0].length);
                const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
                if (lines.size > 1) broken.push(word[0]);
            }
        }
    }
    return broken;
}"""


@pytest.mark.parametrize("report", REPORTS[1:])
def test_no_word_is_broken_inside_a_cell_on_paper_and_on_a_screen(visit, request, report):
    page = visit(request.getfixturevalue(report)).page
    for media, widths in (("print", PAGES.values()), ("screen", (390, 768, 1300))):
        page.emulate_media(media=media)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(BROKEN_WORDS) == [], (media, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, media


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("width", [390, 1300])
def test_what_can_be_scrolled_says_so(visit, request, report, width):
    seen = visit(request.getfixturevalue(report), viewport={"width": width, "height": 900})
    found = seen.page.eval_on_selector_all(
        ".scroll",
        """all => all.filter((e) => e.checkVisibility()).map((e) => [
            e.scrollWidth > e.clientWidth + 4,
            e.dataset.more,
            e.previousElementSibling.matches(".scroll-hint") && e.previousElementSibling.checkVisibility(),
        ])""",
    )
    assert found
    for scrolls, more, told in found:
        assert told == scrolls
        assert more == ("right" if scrolls else "")
    if width == 390:
        assert any(scrolls for scrolls, _, _ in found)


def test_the_hint_follows_the_scrolling(visit, clinic_report):
    seen = visit(clinic_report, viewport={"width": 390, "height": 900})
    table = seen.page.locator(".scroll:has(.unsure)")
    assert table.get_attribute("data-more") == "right"
    table.evaluate("e => { e.scrollLeft = 40; }")
    seen.page.wait_for_selector(".scroll:has(.unsure)[data-more='both']", state="attached")
    table.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    seen.page.wait_for_selector(".scroll:has(.unsure)[data-more='left']", state="attached")


def test_sixty_tasks_are_folded_by_group(visit, hospital_report):
    seen = visit(hospital_report, viewport={"width": 1300, "height": 900})
    assert seen.page.evaluate("document.documentElement.scrollHeight") < 9000
    rows = seen.page.locator(".sizes tbody.members tr")
    assert rows.count() == 60
    assert not any(row.is_visible() for row in rows.all())
    first = seen.page.locator("[data-fold]").first
    first.click()
    shown = sum(row.is_visible() for row in rows.all())
    assert 0 < shown <= 60
    assert first.get_attribute("aria-expanded") == "true"
    first.click()
    assert not rows.first.is_visible()
    seen.page.emulate_media(media="print")
    assert rows.first.is_visible(), "paper cannot be unfolded"


def test_names_that_would_be_equal_when_shortened_stand_whole(visit, hospital_report):
    seen = visit(hospital_report)
    names = seen.page.locator(".heat thead th").all_text_contents()
    assert len(set(names)) == 40
    assert "Hospital No. 07 of the Northern Region" in names
    chips = seen.page.locator(".sizes .chip.task").all_text_contents()
    assert len(set(chips)) == 60
    assert seen.page.locator(".sizes .chip.task").first.get_attribute("title").startswith("Hospital No. ")


def test_only_some_of_many_pictures_are_open(visit, hospital_report):
    seen = visit(hospital_report)
    assert sum(picture.is_visible() for picture in seen.page.locator(".scatter").all()) == 12
    seen.page.locator("details.more summary").click()
    assert sum(picture.is_visible() for picture in seen.page.locator(".scatter").all()) == 40


def test_eight_clusters_fit_into_the_toolbar(visit, clinic_report):
    seen = visit(clinic_report, viewport={"width": 1300, "height": 900})
    bar = seen.page.locator(".bar").bounding_box()
    chips = [chip.bounding_box() for chip in seen.page.locator(".bar .chip").all()]
    assert len(chips) == 8
    assert all(bar["x"] <= chip["x"] and chip["x"] + chip["width"] <= 1300 for chip in chips)
    assert seen.page.locator(".bar .chips").get_attribute("data-more") == ""
    assert seen.page.locator(".bar .label").bounding_box()["height"] < 30


def test_the_first_screen_needs_no_glossary(visit, clinic_report):
    seen = visit(clinic_report, viewport={"width": 1300, "height": 900})
    head = seen.page.locator("header")
    assert head.bounding_box()["height"] < 900
    text = head.inner_text()
    assert "480 rows in 3 tasks (clinic) fall into 8 clusters." in text
    assert "1 if clusters do not touch, 0 as in noise" in text
    assert "samples of 50 % of the rows" in text
    assert "young and fit" in text
    for word in ("leave-one-out", "R²", "NMI", "silhouette", "λ", "coupling"):
        assert word not in text


def test_years_have_no_thousands(visit, clinic_report):
    seen = visit(clinic_report)
    years = seen.page.locator(".traits tr:has(th:text-is('year')) td:not(.strength)").all_inner_texts()
    assert years
    assert all(len(year) == 4 and year.isdecimal() for year in years)


def test_the_theme_button_says_what_it_is(visit, clinic_report):
    seen = visit(clinic_report)
    theme = seen.page.locator("#theme")
    names = []
    for _ in range(3):
        names.append(theme.inner_text())
        theme.click()
    assert names == ["Theme: system", "Theme: light", "Theme: dark"]


def test_the_least_sure_rows_have_their_values(visit, clinic_report):
    seen = visit(clinic_report)
    assert seen.page.locator(".unsure tbody tr").count() == 12
    header = seen.page.locator(".unsure thead th").all_text_contents()
    assert header[:5] == ["Row", "Task", "Cluster", "Next", "Margin"]
    assert "total_cholesterol_hdl_ratio" in [name.replace("​", "") for name in header]


def blank_ends(pdf, home):
    """Share of every page below its last line, the margins not counted."""
    if shutil.which("pdftoppm") is None:
        pytest.skip("there is no pdftoppm (poppler-utils) to draw the pages with")
    image = pytest.importorskip("PIL.Image")
    (home / "report.pdf").write_bytes(pdf)
    subprocess.run(["pdftoppm", "-r", "40", "-gray", "-png", home / "report.pdf", home / "page"], check=True)
    ends = []
    for page in sorted(home.glob("page*.png")):
        with image.open(page) as drawn:
            pixels = np.asarray(drawn.convert("L"))
        height, margin = len(pixels), round(16 / 25.4 * 40)
        last = np.flatnonzero((pixels < 200).any(axis=1)).max(initial=margin)
        ends.append(1 - (last - margin) / (height - 2 * margin))
    return ends


@pytest.mark.parametrize(("report", "paper"), list(zip(REPORTS, [*PAGES] * 2)))
def test_no_page_but_the_last_is_half_empty(visit, request, report, paper, tmp_path):
    seen = visit(request.getfixturevalue(report))
    ends = blank_ends(seen.page.pdf(format=paper, print_background=True), tmp_path)
    assert len(ends) >= 3
    assert max(ends[:-1]) < 0.5, [round(end, 2) for end in ends]
