"""The report in a real browser: drawn, searched and filtered, and silent meanwhile."""

import re
from collections import Counter

import pytest
from browsing import browser, columns, draw_all, rows, show, visit, written  # noqa: F401
from playwright.sync_api import expect


def plots(page, inside: str = "") -> int:
    """Of the plots that are not hidden, how many are there, or have that inside."""
    return page.evaluate("""inside => [...document.querySelectorAll('.plot')].filter(plot => plot.checkVisibility()
                            && (!inside || plot.querySelector(inside))).length""", inside)


def names_drawn(page, plot: str) -> set[str]:
    return set(page.locator(plot).evaluate("plot => plot.data.map(trace => trace.name)"))


def test_every_plot_is_drawn_on_the_way_down_and_not_before(show):
    page = show()
    expect(page.locator("#plot-overview .main-svg").first).to_be_visible()
    assert plots(page, ".main-svg") < plots(page) / 2
    for _ in range(100):
        page.mouse.wheel(0, 800)
        if page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 2"):
            break
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function("[...plots].every(([plot, it]) => !plot.checkVisibility() || it.drawn)")
    assert plots(page, ".main-svg") == plots(page) > 20


def test_what_was_packed_is_what_was_measured(show, quick):
    data = show().evaluate("data")
    about = {"rel": 1e-3}  # of the median; no digit that the page shows
    for cell, shown in zip(quick.campaign.cells, data["cells"], strict=True):
        answer = next(iter(shown["answers"].values()))
        faults = next(each["values"] for each in shown["counters"] if each["title"] == "minor faults")
        for place, name in enumerate(quick.allocators):
            runs = quick.good_runs(cell.name, name)
            assert [number for number, _ in answer["rounds"][place] or ()] == [run.round for run in runs]
            if not runs:
                continue
            assert [value for _, value in answer["rounds"][place]] == pytest.approx(
                [run.metrics[answer["metric"]] for run in runs], **about)
            values = quick.values(cell, name, answer["metric"]).values()
            assert [answer["low"][place], answer["high"][place]] == pytest.approx([min(values), max(values)], **about)
            assert faults[place] == pytest.approx(quick.median(cell, name, "minor_faults"), rel=5e-3)
            step, curve = shown["resident"][place]
            peaks = sorted(max(kb for _, kb in run.resident) for run in quick.runs(cell.name, name))
            assert max(curve) == pytest.approx(peaks[len(peaks) // 2], rel=5e-3) and step > 0


def test_every_plot_shows_something_and_says_what_and_of_whom(show):
    page = show()
    page.locator("#heat [data-row] button").first.click()
    draw_all(page)
    empty = page.evaluate("""[...plots.keys()].filter(plot => plot.checkVisibility() && !plot.querySelector(
        '.scatterlayer .points path, .scatterlayer .lines path, .barlayer path')).map(plot => plot.ariaLabel)""")
    assert not empty
    said = page.locator(".plot:visible").evaluate_all("plots => plots.map(plot => [plot.role, plot.ariaLabel])")
    assert len(said) > 20 and {role for role, _ in said} == {"img"}
    assert len({label for _, label in said}) == len(said), "two plots of one name"
    for _, label in said:
        assert re.search(r"^.+: .+, of .*\bhmalloc\b", label), label
    first = page.locator("[data-panels=threads] .plot").first
    assert "ns per operation over threads" in first.get_attribute("aria-label")


def test_no_id_is_given_twice(show):
    ids = show().evaluate("[...document.querySelectorAll('[id]:not(svg *)')].map(each => each.id)")
    assert [name for name, count in Counter(ids).items() if count > 1] == []


def test_a_row_opens_its_rounds_memory_and_counters(show):
    page = show()
    button = page.locator("#heat [data-row] button").first
    button.click()
    expect(page.locator(".details .plot .main-svg").first).to_be_visible()
    assert page.locator(".details .plot").count() == 2
    rounds = page.locator(".details .plot").first
    assert set(rounds.evaluate("plot => plot.data.map(trace => trace.x.length)")) == {6}, "all rounds, the noisy one too"
    assert rounds.evaluate("plot => plot.data[0].marker.symbol.indexOf('circle-open')") == 2, "round 3 was noisy"
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


def test_the_summary_is_copied_by_one_press(show):
    page = show()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_text("Summary to share").click()
    page.locator("#copy").click()
    expect(page.locator("#copy")).to_have_text("Copied")
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == page.locator("#summary").inner_text() and text.startswith("hmalloc against")


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
    peers = page.locator("fieldset", has_text="Peers").get_by_role("button")
    peers.click()
    assert columns(page) == ["hmalloc", "hmalloc-explicit", "hmalloc-all-shared", "no-allocator"]
    peers.click()
    assert "glibc" in columns(page)


def test_family_threads_and_search_narrow_tables_and_curves(show):
    page = show()
    panels = page.locator("[data-panels=threads] .panel:visible")
    everything, every_panel = rows(page), panels.count()
    page.locator("#family").select_option("shared")
    assert 0 < len(rows(page)) < len(everything) and 0 < panels.count() < every_panel
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
    figures, papers = page.locator("article.figure:visible"), page.locator("details.paper:visible")
    expect(figures).to_have_count(0)
    page.get_by_label("Search").fill("fig. 11 thread")
    found = figures.all_inner_texts()
    assert found and all("Fig. 11" in text for text in found)
    assert 0 < papers.count() < page.locator("details.paper").count()


def test_claims_are_folded_away_until_a_link_or_a_press_opens_them(show):
    page, shown = show(), "article.figure .says:visible"
    for press, count in ((None, 0), ("details.paper > summary", 0), ("details.paper .figure summary", 1)):
        if press:
            page.locator(press).first.click()
        expect(page.locator(shown)).to_have_count(count)
    linked = show("#hmalloc-fig-11-a")
    expect(linked.locator("#hmalloc-fig-11-a .says")).to_be_in_viewport()
    expect(linked.locator(shown)).to_have_count(1)


def test_a_link_to_a_losing_cell_opens_it_whatever_hides_it(show):
    page = show()
    link = page.locator("#losses a[data-question=memory]").first
    name = link.inner_text()
    page.get_by_label("Search").fill("no such thing")
    link.evaluate("link => link.click()")
    expect(page.locator(f'[data-row="{name}"] button')).to_have_attribute("aria-expanded", "true")
    expect(page.locator(f'[data-row="{name}"]')).to_be_in_viewport()
    assert page.locator("#question [aria-pressed=true]").inner_text() == "Memory"
