"""The page of hmalloc profile in a real browser: sorted, searched, opened, printed, without its script; and silent meanwhile."""

import pytest
import sharing_sample as sample
from hmalloc_lab.profile import page as sharing
from test_sharing_page import EVIL, followed

pytest.importorskip("playwright.sync_api", reason="playwright is of the laboratory's packages")
from browsing import browser, visit  # noqa: E402, F401
from playwright.sync_api import expect  # noqa: E402

ORDERS = {"Handed over": "handed_over", "Allocated": "allocated", "Held": "held"}


@pytest.fixture
def show(visit, tmp_path):
    """Opens a document's page."""

    def open(document: dict, anchor: str = "", **options):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        sharing.write(document, path)
        return visit(path.as_uri() + anchor, **{"viewport": {"width": 1280, "height": 900}, **options})

    return open


def names(page) -> list[str]:
    """Of the places that are seen, from the top."""
    return page.locator(".sites .name button:visible").all_inner_texts()


def named(site: dict) -> str:
    return site["function"] or site["address"]


def background(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize(("title", "order"), ORDERS.items())
def test_places_are_sorted_by_what_is_pressed(show, title, order):
    document = sample.redis()
    page = show(document)
    assert names(page) == [named(site) for site in document["sites"]]
    head = page.locator(".sites").get_by_role("columnheader", name=title)
    if order != "handed_over":
        assert head.get_attribute("aria-sort") == "none"
        page.get_by_role("button", name=title).click()
    falling = sorted(document["sites"], key=lambda site: -site[order]["bytes"])
    assert head.get_attribute("aria-sort") == "descending" and names(page)[:9] == [named(site) for site in falling][:9]
    page.get_by_role("button", name=title).press("Enter")
    assert head.get_attribute("aria-sort") == "ascending" and names(page)[-1] == named(falling[0])
    assert page.locator("[aria-sort=none]").count() == len(ORDERS)


def test_places_are_found_by_function_file_caller_and_library(show):
    page = show(sample.redis())
    whole = len(names(page))
    page.keyboard.press("/")
    for text, found in (("dictADD", "dictAddRaw"), ("libc.so", "getaddrinfo"), ("zset node", "zslCreateNode")):
        page.keyboard.type(text)
        assert found in names(page) and len(names(page)) < 5, text
        expect(page.locator("#found")).to_have_text(f"{len(names(page))} of {whole}")
        page.keyboard.press("Escape")
        assert len(names(page)) == whole
    page.keyboard.type("no such thing, not even t")
    expect(page.locator("#none-found")).to_be_visible()


def test_a_place_opens_and_closes_by_key(show):
    page = show(sample.redis())
    button = page.get_by_role("button", name="sdsnewlen")
    expect(page.locator(".more:visible")).to_have_count(0)
    button.press("Enter")
    expect(page.locator(".more:visible")).to_have_count(1)
    assert button.get_attribute("aria-expanded") == "true"
    expect(page.locator(".more:visible")).to_contain_text("decrRefCount (object.c:370)")
    button.press("Space")
    expect(page.locator(".more:visible")).to_have_count(0)


def test_advice_leads_to_its_place_whatever_hides_it(show):
    document = sample.redis()
    page = show(document)
    page.get_by_label("Find").fill("no such thing")
    page.locator("#advice a").first.click()
    site = document["advice"][0]["site"]
    expect(page.locator(f"#site-{site} .more")).to_be_visible()
    expect(page.locator(f"#site-{site}")).to_be_in_viewport()
    assert page.evaluate("document.activeElement.textContent") == named(document["sites"][site])
    expect(show(document, f"#site-{site}").locator(f"#site-{site} .more")).to_be_visible()


def test_a_group_of_threads_opens_to_its_threads_in_rows_and_columns(show):
    page = show(sample.many_threads())
    cells = "#matrix tbody tr:visible"
    heads = page.locator("#matrix thead th:visible")
    assert (page.locator(cells).count(), heads.count()) == (4, 6)
    group = page.get_by_role("button", name="worker-* (37)")
    group.press("Enter")
    assert (page.locator(cells).count(), heads.count()) == (41, 43)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    widths = page.locator(cells).evaluate_all("rows => rows.map(row => [...row.cells].filter(c => c.checkVisibility()).length)")
    assert set(widths) == {43}
    group.click()
    assert (page.locator(cells).count(), heads.count()) == (4, 6)


def test_the_light_follows_the_system_until_it_is_chosen(show):
    document = sample.one_thread()
    light, dark = show(document), show(document, color_scheme="dark")
    first = background(light)
    assert first != background(dark)
    light.locator("#theme").click()
    assert background(light) == background(dark) and light.locator("#theme").inner_text() == "Light"
    light.keyboard.press("t")
    assert background(light) == first


@pytest.mark.parametrize("width", [360, 700, 1000])
@pytest.mark.parametrize("make", [sample.redis, sample.many_threads])
def test_a_narrow_window_scrolls_down_only(show, make, width):
    document = followed(make(), "_and_a_very_long_name_without_any_place_to_break_it" * 3)
    document["threads"] = make()["threads"]
    page = show(document, viewport={"width": width, "height": 740})
    for button in page.locator("[data-opens], .name button").all()[:6]:
        button.click()
    page.locator("details summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_focus_is_seen_on_everything_that_can_be_pressed(show):
    page = show(sample.many_threads())
    seen = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.tagName"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert seen >= {"A", "BUTTON", "INPUT", "SUMMARY", "DIV"}


def test_without_its_script_everything_can_be_read(show):
    document = sample.redis()
    page = show(document, java_script_enabled=False)
    expect(page.locator("#matrix td.value:visible")).to_have_count(len(document["matrix"]))
    expect(page.locator(".more:visible")).to_have_count(len(document["sites"]))
    for useless in ("#theme", "#search"):
        expect(page.locator(useless)).to_be_hidden()
    page.locator("details summary").click()
    expect(page.locator(".pairs tbody tr:visible")).to_have_count(len(document["matrix"]))


def test_paper_is_light_and_cuts_nothing_off(show):
    a4 = 703  # between the margins, in CSS pixels
    page = show(sample.redis(), viewport={"width": a4, "height": 1000}, color_scheme="dark")
    page.locator(".name button").first.click()
    page.keyboard.press("t")
    page.keyboard.press("t")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')") == "#fff"
    assert page.evaluate("document.documentElement.scrollWidth") <= a4
    assert page.locator("#matrix").evaluate("it => it.scrollWidth <= it.clientWidth || getComputedStyle(it).overflowX === 'visible'")
    expect(page.locator(".more:visible")).to_have_count(1)
    for control in (".acts", ".find", ".contents", "details.pairs"):
        expect(page.locator(control)).to_be_hidden()


def test_texts_that_are_markup_do_nothing(show):
    page = show(followed(sample.redis(), EVIL))
    for button in page.locator(".name button").all()[:3]:
        button.click()
    page.locator("#matrix .value").first.hover()
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
    assert page.locator(".name code").first.inner_text() == "readQueryFromClient" + EVIL
    assert page.locator("#matrix .value").first.get_attribute("title").count(EVIL) == 2


@pytest.mark.parametrize("make", [sample.redis, sample.many_threads, sample.one_thread, sample.empty])
def test_no_id_is_given_twice_and_every_link_leads_somewhere(show, make):
    page = show(make())
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))
    links = page.evaluate("[...document.querySelectorAll('a')].map(each => each.getAttribute('href'))")
    assert {link.removeprefix("#") for link in links} <= set(ids)
