"""hmalloc pdes --live: what it draws of made-up points, and what becomes of the program."""

import io
import json

import pytest
from hmalloc_lab import watch
from rich.console import Console


def point(rate: float) -> str:
    return json.dumps({"wall_s": 10.0, "now": 25.0, "percent": 25.0, "events_per_s": rate, "window": 0.5, "windows": 7,
                       "pending": 8192, "bytes": 500_000, "blocked": [0.1, 0.75]})


@pytest.fixture
def view():
    return watch.View("toy")


def drawn(view: watch.View) -> dict[str, str]:
    """Lines by their first word, or by the first two of a thread's."""
    console = Console(file=io.StringIO(), width=160)
    console.print(view)
    lines = (line.split() for line in console.file.getvalue().splitlines())
    return {" ".join(words[:1 + (words[0] == "thread")]): " ".join(words) for words in lines}


def test_the_picture_says_who_works_how_fast_it_goes_and_how_long_it_takes(view):
    assert drawn(view) == {"toy": "toy builds its LPs"}
    assert all(view.see(point(rate)) for rate in (0, 50_000, 100_000))
    rows = drawn(view)
    assert rows["toy"].endswith("25 % virtual time 25 10 s, some 30 s to go")
    assert rows["events/s"] == "events/s ▁▅█ 100 k" and rows["pending"].endswith(" 8.19 k, 500 kB")
    assert rows["thread 0"].endswith("works 90 % waits 10 %") and rows["thread 1"].endswith("works 25 % waits 75 %")


@pytest.mark.parametrize("line", ["phold: saved at time 3", "{", "{}", "[1]", "{\"events\": 1}"])
def test_what_is_no_point_is_for_the_user(view, line):
    assert not view.see(line)


@pytest.mark.parametrize("end, code", [("exit 3", 3), ("kill -KILL $$", 137)])
def test_the_code_is_the_program_s(end, code):
    assert watch.run(Console(file=io.StringIO()), ["/bin/sh", "-c", end], "toy", live=False, page=None) == code
