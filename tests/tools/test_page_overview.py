"""The first screen of the report: honest about losses, about too few rounds and cells, and fit to be shared."""

import re
from dataclasses import replace

import pytest
from fabricate import fabricate
from hmalloc_lab.bench import catalogue, statistics
from hmalloc_lab.bench.results import Results
from hmalloc_lab.page import overview, page
from hmalloc_lab.page.questions import TIME

from pages import section, without, words


@pytest.fixture
def of(tmp_path):
    """A campaign of so many rounds, in which hmalloc takes so many times as long as usual."""
    return lambda rounds, factor=1.0: Results.read(
        fabricate(tmp_path / f"{rounds}.db", "quick", rounds, slow={"hmalloc": factor}))


def losing_cells(results: Results) -> set[str]:
    """Counted here on its own: where some peer's time is distinguishably better."""
    def loses(cell) -> bool:
        ratios = [statistics.ratio(results, cell, "hmalloc", peer.name) for peer in results.peers]
        return any(each and each.verdict == "slower" for each in ratios)

    return {cell.name for cell in results.campaign.cells if cell.metric == "ns_per_op" and loses(cell)}


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_every_losing_cell_is_listed_and_counted(of, factor):
    results = of(8, factor)
    duels = overview.duels(results)
    assert {duel.cell.name for duel in duels.losses if duel.question.id == "time"} == losing_cells(results)
    listed = section(page.render(results), "overview")
    losses = words(listed[listed.index('id="losses"'):listed.index('id="leads"')])
    assert f"Where hmalloc loses {len(duels.losses)}" in losses
    places = [losses.index(f"{duel.cell.name} {duel.question.title.lower()}") for duel in duels.losses]
    ratios = [duel.ratio.median for duel in duels.losses]
    assert places == sorted(places) and ratios == sorted(ratios, reverse=True), "not worst first"


def test_a_slow_hmalloc_does_not_lead(of):
    results = of(8, 4.0)
    fast = overview.rankings(results)[0]
    assert fast.leader != "hmalloc" and "hmalloc is 9th of 9" in fast.sentence
    assert not [duel for duel in overview.duels(results).leads if duel.question.id == "time"]


def test_whole_programs_are_no_part_of_a_ranking_unless_they_alone_were_measured(quick):
    whole, other = catalogue.apart("paper")[0], quick.campaign.cells[0]
    runs = [replace(run, cell=whole.name, metrics=run.metrics | {"cpu_s": 9.0 if run.allocator == "hmalloc" else 1.0})
            for run in quick.campaign.runs if run.cell == other.name]
    together = without(quick, cells=[*quick.campaign.cells, whole], runs=[*quick.campaign.runs, *runs])
    assert [each.means for each in overview.rankings(together)] == [each.means for each in overview.rankings(quick)]
    assert overview.rankings(together)[0].means == statistics.family_means(together)["all"]
    alone = overview.rankings(without(quick, cells=[whole], runs=runs))[0]
    assert alone.means["hmalloc"].cells == 1 and alone.means["hmalloc"].value == pytest.approx(9)


@pytest.mark.parametrize("low, high, close", [(1.0, 1.05, False), (0.95, 1.2, True)])
def test_a_narrow_lead_is_called_one(low, high, close):
    means = {"hmalloc": statistics.Mean(1.02, low, high, 40), "jemalloc": statistics.Mean(1.1, 1.0, 1.2, 40)}
    assert ("too close to call" in overview.Ranking(TIME, means, 10).sentence) == close


def test_a_win_is_one_against_every_peer(quick):
    duels = overview.duels(quick)
    assert duels.leads
    for duel in duels.leads:
        theirs = [quick.median(duel.cell, peer.name, duel.metric) for peer in quick.peers]
        assert duel.ours < min(value for value in theirs if value is not None), duel.cell.name


def test_a_verdict_and_a_headline_take_five_rounds(of):
    def headlines(text: str) -> list[str]:
        return re.findall(r'<p class="big">(.*?)</p>', text)

    results = of(4)
    duels = overview.duels(results)
    assert not duels.losses and not duels.leads and duels.too_few == duels.total > 0
    text = section(page.render(results), "overview")
    assert headlines(text) == ["too few rounds"] * 4
    assert "4 rounds of most cells: a leader is named from 5 on." in words(text)
    assert [words(text).count(f"{title} × the best, ") for title in ("Time", "Memory", "Latency tail")] == [1, 1, 1]
    found = headlines(page.render(results := of(5)))
    assert set(found[:3]) <= set(results.allocators) and re.fullmatch(r"\d+ of \d+", found[3])


@pytest.mark.parametrize("rounds, told", [(4, False), (6, True)])
def test_the_summary_to_share_has_machine_date_allocators_and_numbers(of, rounds, told):
    results = of(rounds)
    text = re.search(r'<pre id="summary"[^>]*>(.*?)</pre>', page.render(results), re.S)[1]
    for part in ("Made-up CPU at 3.0 GHz", "2 CPUs", "21 November 2026", f"{rounds} rounds",
                 *(f"{row.name} {row.version}" for row in results.drop_ins)):
        assert part in text, part
    numbers = re.findall(r"^(time|memory|latency tail): hmalloc ([\d.]+) [\[(]([\d.]+)(?:, | to )([\d.]+)[\])] ×", text,
                         re.M)
    assert len(numbers) == (3 if told else 0) and text.count("too few rounds to tell") == (0 if told else 3)
    for ranking, (title, *shown) in zip(overview.rankings(results), numbers, strict=False):
        mean = ranking.means["hmalloc"]
        assert title == ranking.question.title.lower()
        assert [float(each) for each in shown] == pytest.approx([mean.value, mean.low, mean.high], abs=0.005)


@pytest.mark.parametrize("count, spread, bracket", [(4, "smallest and largest", "("), (5, "95 % interval", "[")])
def test_few_cells_have_a_range_and_no_interval(quick, count, spread, bracket):
    cells = [cell for cell in quick.campaign.cells if cell.metric == "ns_per_op" and cell.family == "local"][:count]
    names = {cell.name for cell in cells}
    results = without(quick, cells=cells, runs=[run for run in quick.campaign.runs if run.cell in names])
    text = section(page.render(results), "overview")
    ranks = text[text.index('class="ranks"'):text.index('id="losses"')]
    assert set(re.findall(r"95 % interval|smallest and largest", ranks)) == {spread}
    assert ("(smallest to largest of fewer than five cells)" in text) == (count < 5)
    assert re.search(rf"^time: hmalloc [\d.]+ {re.escape(bracket)}", text, re.M)


def test_nothing_is_shared_of_hmalloc_alone(quick):
    assert "Summary to share" not in page.render(quick.among(["hmalloc"]))


def test_an_interrupted_campaign_says_so(quick):
    text = page.render(without(quick, finished=None))
    assert "interrupted" in section(text, "environment") and "of 6 planned" in section(text, "overview")
