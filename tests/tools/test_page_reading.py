"""The report in a real browser: in light and dark, by keys, on paper, in narrow windows, with strange names."""

from dataclasses import replace

import pytest
from browsing import browser, columns, draw_all, rows, show, visit, written  # noqa: F401
from fabricate import fabricate
from hmalloc_lab.bench import store
from hmalloc_lab.bench.results import Results
from hmalloc_lab.page import page as report
from playwright.sync_api import expect

from pages import without

EVIL = '<b>"><img src=x onerror=window.hacked=1></script><script>window.hacked=1</script>&amp;{{c}}'


def background(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_theme_follows_the_system_until_it_is_chosen(show):
    first, light, dark = show(), show(), show(color_scheme="dark")
    first.wait_for_selector("#plot-overview .gridlayer path", state="attached")
    assert background(light) != background(dark)
    light.locator("#theme").click()
    light.wait_for_function("plots.get(document.getElementById('plot-overview')).drawn")
    assert background(light) == background(dark)
    dark.wait_for_selector("#plot-overview .gridlayer path", state="attached")
    for drawn, property in ((".gridlayer path", "stroke"), (".points path", "fill")):
        colour = f"getComputedStyle(document.querySelector('#plot-overview {drawn}')).{property}"
        assert light.evaluate(colour) == dark.evaluate(colour) != first.evaluate(colour)
    assert background(show(light.evaluate("location.hash"))) == background(dark)
    light.keyboard.press("t")
    assert background(light) != background(dark)


def test_keys_search_and_go_from_section_to_section(show):
    page = show()
    page.keyboard.press("Tab")
    assert page.locator(".skip").evaluate("it => it === document.activeElement"), "the first skips the controls"
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("/")
    page.keyboard.type("ring/")
    assert page.get_by_label("Search").input_value() == "ring/"
    page.keyboard.press("Escape")
    assert page.get_by_label("Search").input_value() == "" and len(rows(page)) > 1
    assert page.evaluate("document.activeElement === document.body")
    for key, expected in (("j", "heatmap"), ("j", "threads"), ("j", "memory"), ("k", "threads")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == expected
        expect(page.locator(f"#{expected} h2").first).to_be_in_viewport()


def test_the_table_is_walked_with_arrows(show):
    page = show()
    page.locator("#heat [data-row] button").first.focus()
    for key, row in (("ArrowDown", 1), ("Enter", 1), ("ArrowUp", 0)):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.textContent") == rows(page)[row]
    expect(page.locator(".details")).to_have_count(1)


def test_paper_has_everything_but_the_controls(show, tmp_path):
    page = show(color_scheme="dark")
    page.emulate_media(media="print")
    for control in (".side", "#question", "#curve", "#copy", ".duels summary >> nth=0"):
        expect(page.locator(control)).to_be_hidden()
    page.emulate_media(media="screen")
    page.evaluate("""() => {
      addEventListener('beforeprint', () => {
        const shown = [...plots.keys()].filter(plot => plot.checkVisibility());
        const widths = shown.map(plot => plot.querySelector('.main-svg').getAttribute('width'));
        window.onPaper = { widths: [...new Set(widths)].sort(),
          folded: document.querySelectorAll('details:not([open])').length,
          paper: getComputedStyle(document.documentElement).colorScheme };
      });
      addEventListener('afterprint', () => { window.folded = !document.querySelector('details[open]'); });
    }""")
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    assert page.evaluate("onPaper") == {"widths": ["330", "680"], "folded": 0, "paper": "light"}
    page.wait_for_function("window.folded === true && !onScreen")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_nothing_is_cut_off_on_paper(show):
    a4 = 703  # between the margins, in CSS pixels
    page = show(viewport={"width": a4, "height": 1000})
    page.evaluate("toPaper()")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= a4


@pytest.mark.parametrize("width", [400, 1000])
def test_a_narrow_window_scrolls_down_only(show, width):
    page = show(viewport={"width": width, "height": 800})
    page.locator("#heat [data-row] button").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 400:
        expect(page.get_by_label("Search")).to_be_hidden()
        page.get_by_role("button", name="Contents and filters").click()
        expect(page.get_by_label("Search")).to_be_visible()


def test_names_and_reasons_that_are_markup_do_nothing(show, tmp_path):
    results = Results.read(fabricate(tmp_path / "lab.db", "quick", 6, ("glibc", "hmalloc", EVIL)))
    broken = replace(results.campaign.runs[0], status=store.CRASHED, reason=EVIL)
    report.write(without(results, runs=[broken, *results.campaign.runs[1:]]), tmp_path / "evil.html")
    page = show(path=tmp_path / "evil.html")
    page.locator("#heat [data-row] button").first.click()
    draw_all(page)
    page.locator("#plot-overview").hover()
    assert page.evaluate("window.hacked") is None
    assert EVIL in page.locator("#plot-overview .textpoint").all_text_contents()
    assert EVIL in columns(page) and page.locator("img").count() == 0
    assert EVIL in page.locator("#environment").inner_text()
