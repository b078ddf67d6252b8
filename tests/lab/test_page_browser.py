"""The report in a real browser: drawn, filtered, steered by keys, printed, and silent meanwhile."""

import re
from pathlib import Path

import pytest
from fabricate import fabricate
from hmalloc_lab.bench.results import Results
from hmalloc_lab.page import export
from hmalloc_lab.page import page as report
from playwright.sync_api import expect, sync_playwright

EVIL = '<b>"><img src=x onerror=window.hacked=1></script><script>window.hacked=1</script>'


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "report.html"
    report.write(Results.read(fabricate(folder / "lab.db", "quick", rounds=6)), path)
    return path


@pytest.fixture(scope="module")
def browser():
    """No browser is a failure, not a skip: the launcher installs one."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(**export.browser_options())
        yield browser
        browser.close()


@pytest.fixture
def show(browser, written):
    """Opens the page; at the end of the test the console must have stayed empty and nothing have been asked for."""
    said, asked, contexts = [], [], []

    def open(anchor: str = "", path: Path = written, **options):
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, "color_scheme": "light",
                                         "reduced_motion": "reduce", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri() + anchor)
        page.wait_for_selector("#heat table, #heat-none:not([hidden])", state="attached")
        return page

    yield open
    for context in contexts:
        context.close()
    assert not said
    assert all(address.startswith(("data:", "blob:", "file:")) for address in asked)
    assert len([address for address in asked if address.startswith("file:")]) == len(contexts)


def plots(page, which: str = "") -> int:
    """Of the plots that are not hidden, how many are there, or are `drawn`."""
    inside = ".main-svg" if which == "drawn" else ""
    return page.evaluate("""inside => [...document.querySelectorAll('.plot')].filter(plot => plot.offsetParent
                            && (!inside || plot.querySelector(inside))).length""", inside)


def columns(page) -> list[str]:
    return page.locator("#heat thead th").all_inner_texts()[1:]


def rows(page) -> list[str]:
    return page.locator("#heat [data-row]").evaluate_all("rows => rows.map(row => row.dataset.row)")


def names_drawn(page, plot: str) -> set[str]:
    return set(page.locator(plot).evaluate("plot => plot.data.map(trace => trace.name)"))


# ---- Drawing. -------------------------------------------------------------------------------------------------------


def test_every_plot_is_drawn_on_the_way_down_and_not_before(show):
    page = show()
    expect(page.locator("#plot-overview .main-svg").first).to_be_visible()
    assert plots(page, "drawn") < plots(page) / 2
    for _ in range(100):
        page.mouse.wheel(0, 800)
        if page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 2"):
            break
        page.wait_for_timeout(20)
    page.wait_for_function("[...plots].every(([plot, it]) => !plot.offsetParent || it.drawn)")
    assert plots(page, "drawn") == plots(page) > 20


def test_every_plot_shows_something(show):
    page = show()
    page.evaluate("""for (const [plot, it] of plots) if (plot.offsetParent) draw(plot)""")
    empty = page.evaluate("""[...plots.keys()].filter(plot => plot.offsetParent && !plot.querySelector(
        '.scatterlayer .points path, .scatterlayer .lines path, .barlayer path')).map(plot => plot.ariaLabel)""")
    assert not empty


def test_a_row_opens_its_rounds_memory_and_counters(show):
    page = show()
    button = page.locator("#heat [data-row] button").first
    button.click()
    expect(page.locator(".details .plot .main-svg").first).to_be_visible()
    assert page.locator(".details .plot").count() == 2
    dots = page.locator(".details .plot").first.evaluate("plot => plot.data.map(trace => trace.x.length)")
    assert set(dots) == {6}, "all rounds, the noisy one too"
    hollow = page.locator(".details .plot").first.evaluate(
        "plot => plot.data[0].marker.symbol.map((symbol, at) => symbol === 'circle-open' ? at + 1 : 0).filter(Boolean)")
    assert hollow == [3]
    assert "minor faults" in page.locator(".details table").inner_text()
    assert button.get_attribute("aria-expanded") == "true" and button.evaluate("it => it === document.activeElement")
    button.click()
    expect(page.locator(".details")).to_have_count(0)


def test_the_table_asks_three_questions(show):
    page = show()
    seen = {}
    for question in ("time", "memory", "tail"):
        page.locator(f"#question [data-question={question}]").click()
        seen[question] = rows(page)
        assert "1.00" in page.locator("#heat .value").all_inner_texts()
    assert seen["tail"] and all("latency=1" in name for name in seen["tail"])
    assert not set(seen["tail"]) & set(seen["time"]) and set(seen["memory"]) != set(seen["time"])
    title = page.locator("#heat .value[title*=interval]").first.get_attribute("title")
    assert re.search(r"median of 5 rounds, from .* to .*\n.*the best of the row\n.*× hmalloc, 95 % interval", title)


def test_curves_show_time_or_speed_up(show):
    page = show("#threads")
    plot = "[data-panels=threads] .plot >> nth=0"
    expect(page.locator(plot).locator(".main-svg").first).to_be_visible()
    assert "ideal" not in names_drawn(page, plot)
    page.locator("#curve [data-curve=speedup]").click()
    assert "ideal" in names_drawn(page, plot)


# ---- Filters. -------------------------------------------------------------------------------------------------------


def test_an_allocator_goes_from_everywhere_and_stays_away(show):
    page = show()
    assert "jemalloc" in columns(page) and "jemalloc" in names_drawn(page, "#plot-overview")
    page.get_by_label("jemalloc", exact=True).uncheck()
    for place in (page, reopened := show(page.evaluate("location.hash"))):
        place.wait_for_function("plots.get(document.getElementById('plot-overview')).drawn")
        assert "jemalloc" not in columns(place)
        assert "jemalloc" not in names_drawn(place, "#plot-overview")
        expect(place.locator("[data-allocator=jemalloc]:visible")).to_have_count(0)
    assert not reopened.get_by_label("jemalloc", exact=True).is_checked()
    reopened.get_by_text("Reset").click()
    assert "jemalloc" in columns(reopened)


def test_a_kind_of_allocators_goes_at_once(show):
    page = show()
    page.locator("fieldset", has_text="Peers").get_by_role("button").click()
    assert columns(page) == ["hmalloc", "hmalloc-explicit", "hmalloc-all-shared", "floor"]
    page.locator("fieldset", has_text="Peers").get_by_role("button").click()
    assert "glibc" in columns(page)


def test_family_threads_and_search_narrow_tables_and_curves(show):
    page = show()
    everything, panels = rows(page), page.locator("[data-panels=threads] .panel:visible").count()
    page.locator("#family").select_option("shared")
    assert 0 < len(rows(page)) < len(everything)
    assert 0 < page.locator("[data-panels=threads] .panel:visible").count() < panels
    page.locator("#thread-count").select_option("2")
    assert all("threads=2" in name for name in rows(page))
    page.get_by_text("Reset").click()
    page.get_by_label("Search").fill("ring 64")
    assert rows(page) == ["ring size=64"]
    losing = page.locator(".duels tbody tr:visible").evaluate_all("rows => rows.map(row => row.dataset.cell)")
    assert set(losing) <= {"ring size=64"}
    page.get_by_label("Search").fill("no such thing")
    expect(page.locator("#heat-none")).to_be_visible()


def test_search_finds_figures_of_the_papers(show):
    page = show()
    figures = page.locator("article.figure:visible").count()
    page.get_by_label("Search").fill("fig. 11 thread")
    assert 0 < page.locator("article.figure:visible").count() < figures


def test_a_link_to_a_losing_cell_opens_it_whatever_hides_it(show):
    page = show()
    link = page.locator("#losses a[data-question=memory]").first
    name = link.inner_text()
    page.get_by_label("Search").fill("no such thing")
    link.evaluate("link => link.click()")
    expect(page.locator(f'[data-row="{name}"] button')).to_have_attribute("aria-expanded", "true")
    expect(page.locator(f'[data-row="{name}"]')).to_be_in_viewport()
    assert page.locator("#question [aria-pressed=true]").inner_text() == "Memory"


# ---- Theme and keys. ------------------------------------------------------------------------------------------------


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


def test_the_slash_searches_and_escape_leaves(show):
    page = show()
    page.keyboard.press("/")
    page.keyboard.type("ring/")
    assert page.get_by_label("Search").input_value() == "ring/"
    page.keyboard.press("Escape")
    assert page.get_by_label("Search").input_value() == "" and len(rows(page)) > 1
    assert page.evaluate("document.activeElement === document.body")


def test_j_and_k_go_from_section_to_section(show):
    page = show()
    for expected in ("heatmap", "threads", "memory"):
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.id") == expected
        expect(page.locator(f"#{expected} h2").first).to_be_in_viewport()
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") == "threads"


def test_the_table_is_walked_with_arrows(show):
    page = show()
    page.locator("#heat [data-row] button").first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == rows(page)[1]
    page.keyboard.press("Enter")
    expect(page.locator(".details")).to_have_count(1)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent") == rows(page)[0]


def test_the_first_tab_offers_to_skip_the_controls(show):
    page = show()
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    assert skip.evaluate("it => it === document.activeElement")
    expect(skip).to_be_in_viewport()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


# ---- Paper, narrow windows, strange names. --------------------------------------------------------------------------


def test_paper_has_everything_but_the_controls(show, tmp_path):
    page = show(color_scheme="dark")
    page.emulate_media(media="print")
    for control in (".side", "#question", "#curve", "summary >> nth=0"):
        expect(page.locator(control)).to_be_hidden()
    page.emulate_media(media="screen")
    page.evaluate("""() => {
      addEventListener('beforeprint', () => {
        const shown = [...plots.keys()].filter(plot => plot.offsetParent);
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


def test_names_that_are_markup_do_nothing(show, tmp_path):
    database = fabricate(tmp_path / "lab.db", "quick", 6, ("glibc", "hmalloc", EVIL))
    report.write(Results.read(database), tmp_path / "evil.html")
    page = show(path=tmp_path / "evil.html")
    page.evaluate("for (const [plot] of plots) if (plot.offsetParent) draw(plot)")
    page.locator("#heat [data-row] button").first.click()
    page.locator("#plot-overview").hover()
    assert page.evaluate("window.hacked") is None
    assert EVIL in page.locator("#plot-overview .textpoint").all_text_contents()
    assert EVIL in columns(page) and page.locator("img").count() == 0
