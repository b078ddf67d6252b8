"""hmalloc profile: what it shows is what the program did, or what stands in a profile that is there."""

import gzip
import re
from pathlib import Path

import pytest
from conftest import LAUNCHER, ROOT
from sharing_runs import CONSUME, FEED, RATE, line_of, mapped, on_a_terminal, pooled, profiled, sharing  # noqa: F401


def test_who_allocates_who_frees_and_where(mapped):
    shown, found = mapped.shown, mapped.found
    names = [thread["name"] for thread in found["threads"]]
    feeder, eater = names.index("feeder"), names.index("eater")
    cells = {(cell["allocated_by"], cell["freed_by"]): cell["amount"] for cell in found["matrix"]}
    # Of samples drawn at random, 270 for the smaller blocks: their sum scatters by 6 %.
    assert cells[feeder, eater]["objects"] == pytest.approx(20000, rel=0.4)
    assert cells[feeder, feeder]["objects"] == pytest.approx(20000, rel=0.4)
    site = found["sites"][0]
    assert f"{site['function']} ({site['file']}:{site['line']})" == FEED, "xmalloc only passes on what it got"
    assert site["object"] == "sharing" and site["stack"][:2] == [FEED, f"run_feed (sharing.c:{line_of(' feed();')})"]
    assert site["handed_over"] == site["freed"] and site["block_bytes"] == pytest.approx(224, rel=1e-3)  # of its class
    assert [each["by_other"] for each in site["freed_at"]] == [True]
    assert site["freed_at"][0]["place"] == CONSUME
    for part in (FEED, CONSUME, "feeder", "eater", "handed over", "under 1 us"):
        assert part in shown


def test_what_a_profile_does_not_know_stands_below_the_advice(mapped):
    from hmalloc_lab.profile.advice import RESERVATIONS

    kinds = {each["kind"] for each in mapped.found["advice"]}
    assert kinds and [text in mapped.shown for text in RESERVATIONS.values()] == [kind in kinds for kind in RESERVATIONS]


def test_the_document_has_its_schema(pooled):
    found = pooled.found
    amount = {"objects": float, "bytes": float, "samples": int}
    site = {"function": (str, None), "file": (str, None), "line": (int, None), "path": (str, None),
            "object": str, "address": str, "stack": [str], "block_bytes": float,
            "allocated": amount, "held": amount, "freed": amount, "handed_over": amount,
            "ages": [{"from_ns": int, "to_ns": int, "amount": amount}],
            "freed_at": [{"place": str, "by_other": bool, "amount": amount}]}
    schema = {"schema": str, "version": int, "program": str, "period": int, "missing": str,
              "total": dict.fromkeys(("allocated", "held", "freed", "handed_over"), amount),
              "threads": [{"name": str, "id": int}], "matrix": [{"allocated_by": int, "freed_by": int, "amount": amount}],
              "sites": [site],
              "advice": [{"kind": str, "site": int, "samples": int, "of": int, "blocks": float, "saves_instructions": float,
                          "text": str}]}

    def check(value, form, where):
        if isinstance(form, dict):
            assert set(value) == set(form), where
            for key, part in form.items():
                check(value[key], part, f"{where}.{key}")
        elif isinstance(form, list):
            for each in value:
                check(each, form[0], f"{where}[]")
        elif isinstance(form, tuple):
            assert value is None or type(value) is form[0], where
        else:
            assert type(value) is form or (form is float and type(value) is int), where

    check(found, schema, "map")
    assert (found["schema"], found["version"], found["program"], found["period"]) == ("hmalloc-sharing-map", 1, "sharing", 8192)
    assert len(found["sites"]) >= 2 and found["advice"]
    freed = found["total"]["freed"]
    for parts in (found["matrix"], [age for each in found["sites"] for age in each["ages"]],
                  [place for each in found["sites"] for place in each["freed_at"]]):
        assert sum(part["amount"]["samples"] for part in parts) == freed["samples"]
        assert sum(part["amount"]["bytes"] for part in parts) == pytest.approx(freed["bytes"])
    sites = found["sites"]
    assert sites == sorted(sites, key=lambda each: (-each["handed_over"]["bytes"], -each["allocated"]["bytes"]))


def test_many_threads_of_one_name_are_a_row(pooled):
    assert len(pooled.found["threads"]) > 8
    assert re.search(r"^\d io_thd_\* \(12 threads\)", pooled.shown, re.MULTILINE)
    assert re.search(r"^\d eater \(13 threads\)", pooled.shown, re.MULTILINE)
    assert re.search(r"^\d are io_thd_1 \(\d+\), io_thd_2 \(\d+\), ", pooled.shown, re.MULTILINE)


def test_names_of_threads_do_not_reach_the_terminal_raw(profiled, sharing):
    shown, found = profiled(*RATE, "--", sharing, "odd-name")
    assert "\\x1b[31m\\nred" in shown and "\x1b" not in shown
    assert "\\x1b[31m\\nred" in [thread["name"] for thread in found["threads"]]


def test_functions_to_skip(profiled, mapped):
    _, found = profiled("--from", mapped.profile, "--skip", "^feed$")
    assert found["sites"][0]["function"] == "run_feed"


def test_without_debug_information_there_are_functions_and_without_those_addresses(profiled, sharing, build):
    _, found = profiled(*RATE, "--", build("sharing.c", "no-lines", "-pthread", "-fno-builtin"))
    assert {(site["function"], site["line"]) for site in found["sites"][:2]} == {("feed", None), ("keep_to_itself", None)}
    shown, found = profiled(*RATE, "--", build("sharing.c", "stripped", "-pthread", "-fno-builtin", "-s"))
    site = found["sites"][0]
    assert site["function"] is None and site["object"] == "stripped" and int(site["address"], 16) > 0
    assert f"stripped+{site['address']}" in shown
    assert found["advice"] == [], "there is no place to name"


def test_a_program_may_be_called_anything(profiled, sharing, tmp_path):
    folder = tmp_path / "two\nlines"
    folder.mkdir()
    program = folder / "a \x1b[31mname\u00a0\u00fc"
    program.write_bytes(sharing.read_bytes())
    program.chmod(0o755)
    shown, found = profiled(*RATE, "--", program)
    assert found["sites"][0]["function"] == "feed" and found["sites"][0]["object"] == "a \\x1b[31mname\\xa0\u00fc"
    assert "\x1b" not in shown


@pytest.mark.parametrize("options", [
    ["-no-pie"], ["-pie", "-Wl,-z,noseparate-code"], ["-Wl,-Ttext-segment=0x20000000", "-no-pie"]])
def test_addresses_are_the_files_own(profiled, build, options):
    program = build("sharing.c", "-".join(options), "-g", "-pthread", "-fno-builtin", *options)
    _, found = profiled(*RATE, "--", program)
    assert found["sites"][0]["function"] == "feed"


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_standard_library_passes_on(profiled, build, level):
    _, found = profiled(*RATE, "--", build("records.cc", f"records{level}", "-g", level, "-pthread", "-lstdc++"))
    handed_over = [site for site in found["sites"] if site["handed_over"]["bytes"]]
    assert {(site["function"], site["file"]) for site in handed_over} == {("make_record", "records.cc")}
    places = {each["place"].split(" ")[0] for site in handed_over for each in site["freed_at"] if each["by_other"]}
    assert places <= {"delete_all", "Record::~Record", "~Record"}, "not ~vector and the like"


def test_the_allocator_may_be_linked_in(profiled, build):
    library = ROOT / "build/release/libhmalloc.a"
    if not library.exists():
        pytest.skip(f"{library.name} has not been built")
    program = build("sharing.c", "linked", "-g", "-pthread", "-fno-builtin", "-Wl,--whole-archive", library,
                    "-Wl,--no-whole-archive", "-ldl")
    _, found = profiled(*RATE, "--", program)
    site = found["sites"][0]
    assert f"{site['function']} ({site['file']}:{site['line']})" == FEED and site["freed_at"][0]["place"] == CONSUME


def test_without_binutils_there_are_functions(profiled, sharing, tmp_path):
    shown, found = profiled(*RATE, "--", sharing, PATH=str(tmp_path))
    assert "install binutils" in shown
    assert (found["sites"][0]["function"], found["sites"][0]["line"]) == ("feed", None)


def test_a_file_that_has_changed_names_nothing(tool, sharing, tmp_path):
    program, kept = tmp_path / "program", tmp_path / "kept.pb"
    program.write_bytes(sharing.read_bytes())
    program.chmod(0o755)
    assert tool("profile", *RATE, "--pprof", kept, "--", program).returncode == 0
    assert FEED in tool("profile", "--from", kept).stdout
    program.write_bytes(Path("/bin/true").read_bytes())
    shown = tool("profile", "--from", kept)
    assert shown.returncode == 0 and f"{program}: has changed since" in shown.stdout
    assert "program+0x" in shown.stdout and "feed (" not in shown.stdout


def test_it_fits_80_columns(pooled):
    shown, code = on_a_terminal([LAUNCHER, "profile", "--from", pooled.profile], b"")
    assert code == 0 and "Advice" in shown and max(map(len, shown.splitlines())) <= 80
    tables = pooled.shown[:pooled.shown.index("Advice")].splitlines()
    assert max(len(line) for line in tables if " are " not in line) <= 80


def test_a_wide_terminal_is_not_filled_with_spaces(tool, mapped):
    shown = tool("profile", "--from", mapped.profile, COLUMNS="400").stdout
    assert max(map(len, shown[:shown.index("Advice")].splitlines())) < 200


def test_a_page_is_written(mapped):
    assert "</html>" in mapped.page and "consume (sharing.c:" in mapped.page


# ---- Profiles that are there. ----------------------------------------------------------------------------------------


def varint(number):
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7f | 0x80]), number >> 7
    return out + bytes([number])


def number(field, value):
    return varint(field << 3) + varint(value)


def part(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


class Encoder:
    """A profile as hmalloc writes it, of what a test says: no file is named, so that places are addresses."""

    TYPES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "freed_objects", "freed_space", "freed_samples")

    def __init__(self, types=TYPES, packed=True):
        self.strings, self.out, self.packed, self.seen = [], b"", packed, set()
        self.text("")
        for name in types:
            self.put(1, number(1, self.text(name)) + number(2, self.text("count")))

    def put(self, field, content):  # what it names is written by now
        self.out += part(field, content)

    def text(self, string):
        if string not in self.strings:
            self.strings.append(string)
            self.out += part(6, string.encode())
        return self.strings.index(string)

    def repeated(self, field, values):
        if self.packed:
            return part(field, b"".join(map(varint, values)))
        return b"".join(number(field, value) for value in values)

    def located(self, addresses):
        for address in set(addresses) - self.seen:
            self.seen.add(address)
            self.put(4, number(1, address) + number(3, address))

    def sample(self, stack, values, labels=b""):
        self.located(stack)
        self.put(2, self.repeated(1, stack) + self.repeated(2, values) + labels)

    def life(self, stack, by, freer, objects, size, samples, age=0, freed_at=()):
        self.located(freed_at)
        labels = b"".join(part(3, number(1, self.text(key)) + number(2, self.text(text)))
                          for key, text in (("allocated_by", by), ("freed_by", freer)))
        labels += part(3, number(1, self.text("age")) + number(3, age) + number(4, self.text("nanoseconds")))
        for address in freed_at:
            labels += part(3, number(1, self.text("freed_at")) + number(3, address) + number(4, self.text("address")))
        self.sample(stack, [0, 0, 0, 0, objects, size, samples], labels)

    def bytes(self, comment=""):
        if comment:
            text = self.text(comment)
            self.out += number(13, text)
        return self.out + number(12, 4096) + number(9, 1)


@pytest.mark.parametrize("packed", [True, False])
def test_what_stands_in_a_profile_is_shown(profiled, tmp_path, packed):
    made = Encoder(packed=packed)
    made.sample([0x1000, 0x2000], [10, 640, 4, 256, 0, 0, 0])
    made.life([0x1000, 0x2000], "one (11)", "two (12)", 5, 320, 5, 10**6, [0x3000])
    made.life([0x1000, 0x2000], "one (11)", "renamed (11)", 1, 64, 1)
    made.life([0x1000, 0x2000], "other threads", "other threads", 3, 192, 3)
    file = tmp_path / "made.pb"
    file.write_bytes(made.bytes("7 samples are missing: no memory, or no stack"))
    shown, found = profiled("--from", file)
    assert "7 samples are missing" in shown and found["missing"].startswith("7 samples")
    site, = found["sites"]
    assert site["allocated"] == {"objects": 10, "bytes": 640, "samples": 0} and site["held"]["bytes"] == 256
    assert site["freed"]["samples"] == 9 and site["handed_over"]["samples"] == 5, "who is not known may be the same"
    assert [(age["from_ns"], age["to_ns"]) for age in site["ages"]] == [(0, 1000), (10**6, 10**7)]
    assert site["freed_at"][0] == {"place": "0x3000", "by_other": True, "amount": {"objects": 5, "bytes": 320, "samples": 5}}
    assert {(thread["name"], thread["id"]) for thread in found["threads"]} == {("one", 11), ("two", 12), ("other threads", 0)}


def test_threads_without_a_number_are_told_by_their_names(profiled, tmp_path):
    made = Encoder()
    ends = [("many (0)", "many (0)", 1), ("many (0)", "another of many (0)", 2), ("many (0)", "few (0)", 4),
            ("many (0)", "other threads", 8), ("one (11)", "other threads", 16), ("other threads", "other threads", 32)]
    for at, (by, freer, samples) in enumerate(ends, 1):
        made.life([0x1000 * at], by, freer, samples, 64 * samples, samples)
    file = tmp_path / "made.pb"
    file.write_bytes(made.bytes())
    _, found = profiled("--from", file)
    names = [(thread["name"], thread["id"]) for thread in found["threads"]]
    assert set(names) == {("many", 0), ("another of many", 0), ("few", 0), ("one", 11), ("other threads", 0)}
    cells = {(names[cell["allocated_by"]][0], names[cell["freed_by"]][0]): cell["amount"]["samples"] for cell in found["matrix"]}
    assert cells["many", "many"] == 1 and cells["many", "another of many"] == 2 and cells["many", "few"] == 4
    assert found["total"]["handed_over"]["samples"] == 2 + 4 + 16, "one of the other threads may be one of the many"


def test_a_row_without_a_number_is_of_several_threads(tool, tmp_path):
    made = Encoder()
    for number in range(1, 10):
        made.life([0x1000], f"many{number} ({number})", f"many{number} ({number})", 1, 64, 1)
    made.life([0x1000], "many1 (0)", "many1 (0)", 1, 64, 1)
    file = tmp_path / "made.pb"
    file.write_bytes(made.bytes())
    assert "1 many* (10 threads and more)" in tool("profile", "--from", file).stdout


def test_a_profile_may_be_compressed(tool, mapped, tmp_path):
    packed = tmp_path / "kept.pb.gz"
    packed.write_bytes(gzip.compress(mapped.profile.read_bytes()))
    assert tool("profile", "--from", packed).stdout == tool("profile", "--from", mapped.profile).stdout


def test_a_part_of_a_profile_is_told_wherever_it_ends(mapped):
    from hmalloc_lab.errors import Failure
    from hmalloc_lab.profile.reader import parse

    whole = mapped.profile.read_bytes()
    for form, data in (("plain", whole), ("gzip", gzip.compress(whole))):
        for end in [*range(2, 300), *range(300, len(data), 7), len(data) - 1]:
            with pytest.raises(Failure, match="truncated"):
                parse(data[:end], f"{form} {end}")


NO_FREES = Encoder(Encoder.TYPES[:4]).bytes()
FOREIGN = Encoder(("samples", "cpu")).bytes()


@pytest.mark.parametrize("content, said", [
    (b"", "not a profile, it is empty"), (b"some text\n", "not a profile"), (b"\x7fELF\x02\x01", "not a profile"),
    (FOREIGN, "not a profile of the heap by hmalloc"), (gzip.compress(FOREIGN), "not a profile of the heap by hmalloc"),
    (NO_FREES, "a profile without frees (HMALLOC_PROFILE_FREES=1 was not set)"),
    (gzip.compress(b"some text\n"), "not a profile"), (b"\x1f\x8b but no gzip", "cannot be read: damaged gzip"),
    (gzip.compress(NO_FREES)[:-9], "truncated")],
    ids=["empty", "text", "ELF", "another profile", "another one, packed", "without frees", "packed text", "no gzip",
         "a part, packed"])
def test_other_files_are_told_by_what_they_are(tool, tmp_path, content, said):
    file = tmp_path / "a file"
    file.write_bytes(content)
    shown = tool("profile", "--from", file)
    assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", f"hmalloc: {file}: {said}\n")


def test_a_damaged_profile_is_no_traceback(mapped):
    import random

    from hmalloc_lab.errors import Failure
    from hmalloc_lab.profile.reader import parse

    whole, chance = mapped.profile.read_bytes(), random.Random(1)
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            parse(bytes(data), "damaged")
        except Failure as failure:
            assert str(failure).startswith("damaged: ")


# ---- Names. ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full, short, passes_on", [
    ("feed", "feed", False), ("void feed<Server>(Server&, int) const [clone .cold]", "feed", False),
    ("operator new(unsigned long)", "operator new", True), ("operator delete[](void*)", "operator delete[]", True),
    ("std::vector<int, std::allocator<int> >::_M_insert<int const&>(int const&)", "std::vector::_M_insert", True),
    ("(anonymous namespace)::Parser::parse(char const*)", "Parser::parse", False),
    ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda}::operator()", False),
    ("Ostream& operator<< <int>(Ostream&, int)", "operator<<", False),
    ("Foo::operator bool() const", "Foo::operator bool", False),
    ("Foo::operator->() const", "Foo::operator->", False), ("Foo<(Bar)1>::f()", "Foo::f", False),
    ("__GI___strdup", "__strdup", True), ("parse.constprop.0", "parse", False), ("malloc@@GLIBC_2.2.5", "malloc", True),
    ("<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter", "from_iter", True),
    *[(name, name, True) for name in ("xmalloc", "zcalloc_num", "g_malloc0", "strdup", "PyObject_Malloc", "_PyMem_RawMalloc")],
    *[(name, name, False) for name in ("PyUnicode_New", "freeze", "mallocate", "<<<<")], ("x<", "x", False)])
def test_names_are_short_and_wrappers_are_known(full, short, passes_on):
    from hmalloc_lab.profile.names import Wrappers, shorten

    assert shorten(full) == short
    assert Wrappers().passes_on(full) == passes_on


@pytest.mark.parametrize("part, whole, said", [
    (0, 0, "-"), (0, 9, "0%"), (9, 9, "100%"), (1, 999, "<1%"), (998, 999, ">99%"), (0.995, 100, "1%"), (1, 2, "50%")])
def test_all_and_nothing_are_said_of_all_and_nothing(part, whole, said):
    from hmalloc_lab.printing import in_percent

    assert in_percent(part, whole) == said
