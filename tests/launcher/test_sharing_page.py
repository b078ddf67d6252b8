"""The page of hmalloc profile: a document goes in, a page comes out that holds every number and runs nothing but its own
script."""

import os
import re
import stat
import subprocess
import sys
import threading
from copy import deepcopy
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sharing_sample as sample
from conftest import ROOT
from hmalloc_lab.errors import Failure
from hmalloc_lab.profile import page, page_sites, page_words
from hmalloc_lab.profile.page_matrix import MOST_LINES, Matrix

from pages import section, words

EVIL = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'{{7*7}}</style>&amp;"


class Elements(HTMLParser):
    """The tags, the attributes and the text; fails on what is closed without being open."""
    SINGLE = frozenset(("meta", "br", "input"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.open, self.said = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]
        if tag not in self.SINGLE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.said.append(data)


def rows(markup: str) -> list[list[str]]:
    """Of the first table: the text of each cell."""
    table = re.search(r"<table.*?</table>", markup, re.S)[0]
    return [[words(cell) for cell in re.findall(r"<t[hd]\b.*?</t[hd]>", row, re.S)]
            for row in re.findall(r"<tr\b.*?</tr>", table, re.S)]


def shown(amount: dict) -> str:
    return page_words.size(amount["bytes"]).replace("\u00a0", " ")


@pytest.fixture(scope="module")
def redis() -> dict:
    return sample.redis()


def followed(value, by: str):
    """Every text of a document that comes from the program is followed by this."""
    if isinstance(value, dict):
        return {key: each if key in ("schema", "kind") else followed(each, by) for key, each in value.items()}
    if isinstance(value, list):
        return [followed(each, by) for each in value]
    return value + by if isinstance(value, str) else value


@pytest.mark.parametrize("make", [sample.redis, sample.many_threads, sample.one_thread, sample.empty])
def test_the_page_is_whole_and_asks_for_nothing(make):
    text = page.render(make())
    found = Elements(text)
    assert {"h1", "main", "script"} <= set(found.tags) and found.tags.count("script") == 1
    assert not set(found.attributes) & {"src", "onclick", "onload", "onerror"}
    assert not re.findall(r"https?://|@import|url\(", text)
    policy = re.search(r'Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src &#39;none&#39;" in policy and policy.count("sha256-") == 1 and "connect-src" not in policy
    assert "{{" not in text and "None" not in words(text).replace("None of its", "").replace("None was", "")


def test_every_number_of_the_matrix_is_in_the_table(redis):
    names, amounts = [thread["name"] for thread in redis["threads"]], {}
    for cell in redis["matrix"]:
        amounts[cell["allocated_by"], cell["freed_by"]] = shown(cell["amount"])
    head, *lines, sums = rows(section(page.render(redis), "threads"))
    assert [head[1 + place].split()[0] for place in range(len(names))] == names
    for place, line in enumerate(lines):
        assert line[0].split()[0] == names[place]
        assert line[1:-1] == [amounts.get((place, other), "") for other in range(len(names))]
        for end, said in (("allocated_by", line[-1]), ("freed_by", sums[1 + place])):
            whole = sample.added(cell["amount"] for cell in redis["matrix"] if cell[end] == place)
            assert said == (shown(whole) if whole["bytes"] else "–")
    assert sums[-1] == shown(redis["total"]["freed"])


def test_what_is_kept_and_what_is_handed_over_look_different(redis):
    matrix = Matrix(redis)
    kinds = {(row, column): cell.kind for row, (_, cells, _) in enumerate(matrix.rows)
             for column, cell in enumerate(cells) if cell}
    assert len(kinds) == len(redis["matrix"])
    assert all(kind == ("kept" if row == column else "handed") for (row, column), kind in kinds.items())
    depths = [cell.depth for _, cells, _ in matrix.rows for cell in cells if cell]
    assert max(depths) == 1 and min(depths) < 0.5


def test_forty_threads_are_grouped_and_nothing_is_lost():
    document = sample.many_threads(40)
    matrix = Matrix(document)
    outer = [line for line in matrix.lines if not line.is_member]
    assert [line.name for line in outer] == ["main", "worker-* (37)", "log", "other threads"]
    assert sum(line.is_member for line in matrix.lines) == 37
    for members in (False, True):  # the lines that are seen at first; and those of the groups once they are open
        picked = [place for place, line in enumerate(matrix.lines)
                  if (line.is_member if line.group is not None and members else not line.is_member)
                  and not (members and line.group is not None and not line.is_member)]
        whole = sum(matrix.rows[row][1][column].amount.bytes for row in picked for column in picked
                    if matrix.rows[row][1][column])
        assert whole == pytest.approx(document["total"]["freed"]["bytes"])
    assert {cell.kind for _, cells, _ in matrix.rows for cell in cells if cell} == {"kept", "handed", "mixed"}
    text = section(page.render(document), "threads")
    for cell in document["matrix"]:
        assert shown(cell["amount"]) in words(text)
    pairs = rows(text[text.index("<details"):])[1:]
    assert len(pairs) == len(document["matrix"])
    assert sum(int(row[4].replace(",", "")) for row in pairs) == document["total"]["freed"]["samples"]


@pytest.mark.parametrize("names", [["same"] * 900, [f"own{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(500)],
                                   [f"{chr(97 + n // 10)}-{n % 10}" for n in range(250)]])
def test_very_many_threads_make_a_table_that_can_be_drawn(names):
    maker = sample._Maker(names, 4096)
    for place in range(len(names)):
        maker.site("f", "f.c", 1, 64, (place,), (place, (place + 1) % len(names)), 1e5, 1.0, 2)
    document = maker.document("many")
    matrix = Matrix(document)
    assert len(matrix.lines) <= MOST_LINES
    outer = [line for line in matrix.lines if not line.is_member]
    assert sorted(index for line in outer for index in line.threads) == list(range(len(names)))
    for number in {line.group for line in matrix.lines if line.is_member}:
        inner = [index for line in matrix.lines if line.is_member and line.group == number for index in line.threads]
        group = next(line for line in outer if line.group == number)
        assert sorted(inner) == sorted(group.threads)
    assert len(page.render(document)) < 4e6


def test_blocks_of_threads_that_were_not_told_apart_are_not_called_kept():
    document = sample.one_thread()
    document["threads"] = [{"name": "other threads", "id": 0}]
    (_, (cell,), _), = Matrix(document).rows
    assert cell.kind == "unknown"


def test_threads_of_one_name_without_a_number_are_told_from_those_that_free_theirs():
    document = sample.one_thread()
    document["threads"] = [{"name": "many", "id": 0}, {"name": "another of many", "id": 0}]
    amount = document["matrix"][0]["amount"]
    document["matrix"] = [{"allocated_by": 0, "freed_by": freer, "amount": amount} for freer in (0, 1)]
    (_, cells, _), _ = Matrix(document).rows
    assert [cell.kind for cell in cells] == ["kept", "handed"]


def test_a_row_without_a_number_is_of_several_threads():
    document = sample.many_threads(40)
    document["threads"] = [{"name": f"worker-{place}", "id": place} for place in range(40)]
    assert [line.name for line in Matrix(document).lines if not line.is_member] == ["worker-* (40+)"]
    document["threads"][0]["id"] = 40
    assert [line.name for line in Matrix(document).lines if not line.is_member] == ["worker-* (40)"]


def test_what_a_profile_does_not_know_stands_beside_the_advice(redis):
    from hmalloc_lab.profile.advice import RESERVATIONS

    for kinds in ((), ("local",), ("shared",), ("local", "shared")):
        given = [each for each in redis["advice"] if each["kind"] in kinds]
        said = words(section(page.render(redis | {"advice": given}), "advice"))
        assert [text in said for text in RESERVATIONS.values()] == [kind in kinds for kind in RESERVATIONS]


def test_sites_have_callers_sizes_and_who_frees(redis):
    text = section(page.render(redis), "sites")
    bodies = re.findall(r"<tbody role.*?</tbody>.*?(?=<tbody role|$)", text, re.S)
    assert len(bodies) == len(redis["sites"])
    for site, body in zip(redis["sites"], bodies, strict=True):
        said = words(body)
        assert (site["function"] or site["address"]) in said
        for amount in (site["handed_over"], site["allocated"]):
            assert not amount["bytes"] or shown(amount) in said
        for frame in site["stack"]:
            assert frame in said
        for freed in site["freed_at"]:
            assert f"{freed['place']} {'another' if freed['by_other'] else 'itself'} {shown(freed['amount'])}" in said


def test_a_site_without_symbol_or_file_has_its_address_and_object():
    document = sample.one_thread()
    document["sites"][0] |= {"function": None, "file": None, "line": None, "object": "libx.so", "address": "0xabc"}
    said = words(section(page.render(document), "sites"))
    assert "0xabc in libx.so" in said and "None" not in said
    document["sites"][0] |= {"object": None, "stack": [], "freed_at": [], "ages": [], "file": "x.c"}
    said = words(section(page.render(document), "sites"))
    assert "x.c" in said and "x.c:" not in said and "None" not in said
    document["sites"][0] |= {"path": "/src/deep/x.c", "line": 7}  # the command may know more of the file
    assert "x.c:7 " in (said := words(section(page.render(document), "sites"))) and "/src/deep/x.c:7 in" in said


def test_of_very_many_sites_the_first_of_each_order_are_shown_and_the_rest_are_counted():
    document = sample.one_thread()
    site = document["sites"][0]
    document["sites"] = [deepcopy(site) | {"function": f"f{place}"} for place in range(700)]
    document["sites"][650]["held"]["bytes"] = 1e12
    document["advice"] = [sample.advised(document["sites"][640], 640, "local", 34)]
    found = page_sites.shown(document)
    assert {site.name for site in found} >= {"f0", "f640", "f650"} and "f600" not in {site.name for site in found}
    text = page.render(document)
    assert f"{700 - len(found)} more places" in text and text.count("<tbody role") == len(found)


def test_ages_are_summed_over_the_sites(redis):
    lines = rows(section(page.render(redis), "ages"))[1:]
    labels = [line[0] for line in lines]
    assert labels[:4] == ["under 1 µs", "1–10 µs", "10–100 µs", "100 µs–1 ms"] and labels[-1] == "1,000 s and more"
    objects = sum(age["amount"]["objects"] for site in redis["sites"] for age in site["ages"] if not age["from_ns"])
    assert lines[0][3] == page_words.count(objects).replace("\u00a0", " ")


def test_an_open_last_class_and_empty_classes_between():
    document = sample.one_thread()
    document["sites"][0]["ages"] = [{"from_ns": 0, "to_ns": 1000, "amount": sample.amount(3, 8, 1)},
                                    {"from_ns": 10 ** 5, "to_ns": None, "amount": sample.amount(1, 8, 1)}]
    lines = rows(section(page.render(document), "ages"))[1:]
    assert [(line[0], line[2]) for line in lines] == [
        ("under 1 µs", "75.0 %"), ("1–10 µs", "0 %"), ("10–100 µs", "0 %"), ("100 µs and more", "25.0 %")]


def test_advice_comes_with_its_evidence_and_leads_to_its_site(redis):
    text = section(page.render(redis), "advice")
    said = words(text)
    for advice in redis["advice"]:
        assert advice["text"] in said and f"{advice['samples']:,} of {advice['of']:,} samples" in said
        assert f'href="#site-{advice["site"]}"' in text and f'id="site-{advice["site"]}"' in page.render(redis)


def test_what_rests_on_few_samples_is_marked_and_what_is_missing_is_said(redis):
    document = sample.one_thread()
    assert "few" not in re.findall(r'<td class="value[^"]*"', page.render(document))[0]
    document["matrix"][0]["amount"]["samples"] = 9
    document["missing"] = "12 samples are missing: no memory, or no stack"
    text = page.render(document)
    assert "few" in re.findall(r'<td class="value[^"]*"', text)[0]
    assert document["missing"] in words(section(text, "overview")) and "Incomplete" not in page.render(redis)


def test_an_empty_document_says_so():
    said = words(page.render(sample.empty()))
    assert "No block was sampled" in said and "No sampled block was freed" in said


@pytest.mark.parametrize("make", [sample.redis, sample.many_threads])
def test_texts_that_are_markup_stay_texts(make):
    plain, evil = (Elements(page.render(followed(make(), by))) for by in (" a", EVIL))
    assert evil.tags == plain.tags and evil.attributes == plain.attributes
    assert EVIL in "".join(evil.said)


def test_texts_that_cannot_be_shown_are_marked(tmp_path):
    document = sample.one_thread()
    document["program"] = "a\udcffb\x00c\u202ed\x1b[31m"
    page.write(document, tmp_path / "page.html")
    assert "a\ufffdb\ufffdc\ufffdd\ufffd[31m" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("value", "text"), [(0, "0 bytes"), (88.4, "88 bytes"), (1023.9, "1.00 KB"), (1536, "1.50 KB"),
                                             (1e6, "977 KB"), (3e9, "2.79 GB"), (5e15, "4.44 PB"), (5e19, "44,409 PB")])
def test_sizes_have_three_digits(value, text):
    assert page_words.size(value) == text.replace(" ", "\u00a0")


@pytest.mark.parametrize(("part", "whole", "text"), [(0, 5, "0 %"), (5, 5, "100 %"), (1, 3, "33.3 %"), (1e-9, 1, "< 0.1 %"),
                                                     (999_999, 1_000_000, "> 99.9 %"), (0, 0, "–")])
def test_a_share_is_all_or_nothing_only_where_it_is(part, whole, text):
    assert page_words.share(part, whole) == text.replace(" ", "\u00a0")


# ---- The way into the file. -----------------------------------------------------------------------------------------


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path):
    path = tmp_path / "new" / "page.html"
    page.write(sample.empty(), path)
    first = os.stat(path).st_ino
    page.write(sample.one_thread(), path)
    assert "alone" in path.read_text(encoding="utf-8") and os.stat(path).st_ino != first
    assert os.listdir(path.parent) == ["page.html"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.html").symlink_to("page.html")
    for document in (sample.empty(), sample.one_thread()):
        page.write(document, tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink() and "alone" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_who_may_read_a_page_stays(tmp_path):
    file = tmp_path / "page.html"
    file.touch(0o640)
    page.write(sample.one_thread(), file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640 and "alone" in file.read_text(encoding="utf-8")


def test_a_file_that_looks_like_ours_is_not_taken(tmp_path):
    mine = tmp_path / "page.html.new"
    mine.write_text("mine")
    page.write(sample.one_thread(), tmp_path / "page.html")
    assert mine.read_text() == "mine" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name, beside", [("x" * 255, None), ("page.html", f"page.html.{os.getpid()}.new")])
def test_where_nothing_can_be_made_beside_it_a_page_is_written_itself(tmp_path, name, beside):
    file = tmp_path / name
    if beside:
        (tmp_path / beside).touch()
    page.write(sample.one_thread(), file)
    assert file.read_text(encoding="utf-8").endswith("</html>")


def test_a_pipe_is_written_through(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text(encoding="utf-8")), daemon=True)
    reader.start()
    page.write(sample.one_thread(), tmp_path / "pipe")
    reader.join(20)
    assert got and got[0].endswith("</html>") and (tmp_path / "pipe").is_fifo()


@pytest.fixture
def device(tmp_path):
    """A device of the test's own where root could replace the machine's."""

    def make(name: str, minor: int) -> Path:
        if os.geteuid():
            return Path("/dev", name)
        try:
            os.mknod(tmp_path / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            (tmp_path / name).open("w").close()
        except OSError as error:
            pytest.skip(f"no device can be made: {error.strerror}")
        return tmp_path / name

    return make


def test_a_device_is_written_through(device):
    null = device("null", 3)
    page.write(sample.one_thread(), null)
    assert null.is_char_device() and not list(null.parent.glob("null.*"))


def test_a_full_device_is_one_line(device):
    full = device("full", 7)
    with pytest.raises(Failure, match=f"^{re.escape(str(full))}: No space left on device$") as failure:
        page.write(sample.one_thread(), full)
    assert failure.value.code == 1 and full.is_char_device()


@pytest.mark.parametrize(("name", "why"), [("", "Is a directory"), ("file/page.html", "Not a directory"),
                                           ("loop", "Too many levels")])
def test_what_cannot_be_written_is_one_line(tmp_path, name, why):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    path = tmp_path / name
    with pytest.raises(Failure, match=f"^{re.escape(str(path))}: {why}") as failure:
        page.write(sample.empty(), path)
    assert failure.value.code == 1 and not list(tmp_path.glob("*.new"))


def test_the_page_needs_none_of_the_laboratorys_packages():
    """It is made by a tool, which `hmalloc profile` has to be able to do without them."""
    code = "import sys; from hmalloc_lab.profile import page; print(*{'numpy', 'scipy', 'hdrh'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-B", "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT / "lab")}, text=True,
                          capture_output=True, check=True, timeout=300)
    assert said.stdout == "\n"
