"""The report as a reader sees it, in headless Chromium."""

import re

import pytest
from report_helpers import CLOSING, SCRIPT


@pytest.mark.parametrize("report", ["shop_report", "review_report"])
def test_it_opens_without_a_word_and_asks_for_nothing(visit, request, report):
    path = request.getfixturevalue(report)
    seen = visit(path)
    seen.page.wait_for_timeout(200)
    assert seen.messages == []
    assert seen.requests == [path.as_uri()]


def test_names_that_are_scripts_are_shown_and_do_nothing(visit, shop_report):
    seen = visit(shop_report)
    chips = seen.page.locator(".sizes .chip.task").all()
    assert {chip.get_attribute("title") for chip in chips} == {SCRIPT, "Zürich", CLOSING}
    assert {chip.inner_text() for chip in chips} == {"<script>a…/script>", "Zürich", "</script>…ipt><!--"}
    for chip in chips:  # also when the script of the page handles them
        seen.page.locator("#task-select").select_option(value=chip.get_attribute("data-t"))
        assert chip.get_attribute("title") in seen.page.locator("#said").text_content()
    assert seen.dialogs == seen.messages == []
    assert seen.page.locator("img").count() == 0
    assert seen.page.locator("script").count() == 2


def test_no_other_script_can_run(visit, shop_report):
    seen = visit(shop_report)
    seen.page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.intruder = true";
        document.body.append(script);
    }""")
    assert seen.page.evaluate("window.intruder === undefined")
    assert any("Content Security Policy" in message for message in seen.messages)


def test_pointing_at_a_row_says_what_it_is(visit, shop_report):
    seen = visit(shop_report)
    assert seen.page.locator(".point").count() == 90
    point = seen.page.locator(".point").first
    point.scroll_into_view_if_needed()
    tip = seen.page.locator("#tip")
    for _ in range(20):  # scrolling is smooth: the row may still be moving away from the pointer
        point.hover(force=True)
        if tip.is_visible():
            break
        seen.page.wait_for_timeout(100)
    assert tip.is_visible()
    text = tip.inner_text()
    assert text.startswith(CLOSING)
    assert re.search(r", Cluster \d\n", text)
    assert re.search(r"margin \d\.\d\d", text)
    seen.page.mouse.move(2, 2)
    tip.wait_for(state="hidden")
    assert seen.dialogs == []


def test_a_cluster_selected_anywhere_is_highlighted_everywhere(visit, shop_report):
    seen = visit(shop_report)
    seen.page.locator(".bar .chip[data-c='1']").click()
    for kind in (".point", ".stack button", ".card"):
        assert seen.opacities(f"{kind}[data-c='1']") == {1.0}, kind
        assert max(seen.opacities(f"{kind}[data-c='0']")) < 0.4, kind
    assert seen.page.locator(".card[data-c='1'] .chip").get_attribute("aria-pressed") == "true"
    assert "Cluster 1" in seen.page.locator("#said").text_content()
    seen.page.keyboard.press("Escape")
    assert seen.opacities(".point") == {1.0}
    seen.page.locator(".stack button[data-c='2']").first.click()
    assert max(seen.opacities(".point[data-c='1']")) < 0.4
    seen.page.locator("#clear").click()
    assert seen.opacities(".point") == {1.0}


def test_a_row_of_a_picture_selects_its_cluster(visit, shop_report):
    seen = visit(shop_report)
    seen.page.locator(".point[data-c='2']").first.dispatch_event("click")
    assert seen.page.evaluate("document.documentElement.dataset.cluster") == "2"
    assert seen.opacities(".card[data-c='2']") == {1.0}
    assert max(seen.opacities(".card[data-c='0']")) < 0.4


def test_a_task_selected_anywhere_is_highlighted_everywhere(visit, shop_report):
    seen = visit(shop_report)
    seen.page.locator("#task-select").select_option(label="Zürich")
    task = seen.page.evaluate("document.documentElement.dataset.task")
    for kind in (".scatter", ".sizes tbody tr", ".heat tbody tr", ".dot"):
        assert seen.opacities(f"{kind}[data-t='{task}']") == {1.0}, kind
        others = seen.opacities(f"{kind}:not([data-t='{task}'])")
        assert others
        assert max(others) < 0.4, kind
    seen.page.locator(".heat .chip.task").first.click()
    assert seen.page.locator("#task-select").input_value() != task


def test_light_and_dark_follow_the_system_and_the_button(visit, shop_report):
    def paper(seen):
        return seen.page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = (visit(shop_report, color_scheme=scheme) for scheme in ("light", "dark"))
    assert paper(light) == "rgb(255, 255, 255)"
    night = paper(dark)
    assert night != paper(light)
    dark.page.locator("#theme").click()
    assert paper(dark) == "rgb(255, 255, 255)"
    light.page.locator("#theme").click()
    light.page.locator("#theme").click()
    assert paper(light) == night
    light.page.emulate_media(media="print")
    assert paper(light) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("report", ["shop_report", "review_report"])
def test_nothing_overflows_on_a_phone(visit, request, report):
    seen = visit(request.getfixturevalue(report), viewport={"width": 390, "height": 844}, has_touch=True)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_it_prints_without_its_controls(visit, shop_report):
    seen = visit(shop_report)
    assert seen.page.pdf(format="A4").startswith(b"%PDF")
    seen.page.emulate_media(media="print")
    assert seen.page.locator(".bar").is_hidden()
    assert seen.page.locator(".point").first.is_visible()


def test_every_picture_has_a_name(visit, shop_report):
    seen = visit(shop_report)
    pictures = seen.page.locator("svg[role=img]")
    assert pictures.count() > 5
    nameless = seen.page.eval_on_selector_all(
        "svg[role=img]",
        """all => all.filter(svg => !(svg.getAttribute("aria-label") || (svg.getAttribute("aria-labelledby") || "")
            .split(" ").every(id => document.getElementById(id)?.textContent))).length""",
    )
    assert nameless == 0


def test_words_that_make_a_cluster_are_shown(visit, review_report):
    seen = visit(review_report)
    words = set(seen.page.locator(".traits tbody th").all_inner_texts())
    assert {"img", "src", "script"} <= words
    assert "<b>reviews & more.csv" in seen.page.locator("header .lede").inner_text()
    assert seen.page.locator("header b").count() == 0
    assert seen.dialogs == []
