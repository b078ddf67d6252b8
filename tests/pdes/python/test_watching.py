"""What a run says while it lasts, what is measured of it, and what signals do to it."""

import json
import re
import signal
import subprocess
import sys
import threading
from typing import NamedTuple

import hmalloc_pdes as pdes
import pytest
from conftest import everything
from models import phold


class Beat(NamedTuple):
    pass


SMALL = {"lps": 60, "events_per_lp": 2, "end": 20}


# ---- Measured.

def test_the_lookahead_report_is_that_of_cxx():
    result = phold.run(lookahead_report=True, lookahead=0.25, **SMALL)
    seen = result.delays
    assert seen.count == result.sent and 0.25 <= seen.smallest < 0.3 < seen.mean < seen.largest
    assert seen.suggested_lookahead == float(f"{int(seen.smallest * 100) / 100:.2f}")
    assert seen.smallest <= seen.p1 * 1.05 and seen.p1 < seen.p50 < seen.p99
    (link,) = seen.links
    assert (link.from_, link.to, link.count, link.smallest) == ("Node", "Node", seen.count, seen.smallest)
    assert f"lookahead={seen.suggested_lookahead:g}, if the model guarantees it" in str(result)
    assert phold.run(lookahead=0.25, **SMALL).delays is None


def test_of_a_promise_that_is_too_large_the_report_says_what_holds():
    hasty = {"lookahead": 1.0, "lookahead_report": True}
    assert everything.run(end=20, **hasty).delays.suggested_lookahead >= 1
    with pytest.raises(pdes.Error, match="lookahead violation"):
        everything.run(end=20, lookahead=1.5)
    report = everything.run(end=20, lookahead=1.5, lookahead_report=True)
    assert report.delays.suggested_lookahead < 1.5
    none = everything.run(end=0, lookahead_report=True)
    assert none.delays.count == 0 and "any lookahead would do" in str(none)


@pytest.mark.parametrize("plain", [False, True])
def test_the_longest_chain_is_the_same_on_any_threads(plain):
    one = phold.run(critical_path=True, lookahead=0.25, plain=plain, **SMALL)
    assert 20 < one.path.events < one.events
    assert one.path.parallelism == one.events / one.path.events
    assert re.fullmatch(r"LP \d+ \(Node\)", one.path.last)
    assert f"longest chain: {one.path.events:,} events to {one.path.last}: at most" in str(one)
    two = phold.run(critical_path=True, lookahead=0.25, threads=2, plain=plain, **SMALL)
    assert (two.path, two.digest) == (one.path, one.digest)
    assert phold.run(lookahead=0.25, **SMALL).path is None


def test_a_trace_has_the_lps_of_the_model(tmp_path):
    file = tmp_path / "a trace.json"
    result = phold.run(trace=file, lookahead=0.25, **SMALL)
    events = json.loads(file.read_text())["traceEvents"]
    assert sum(event["args"]["events"] for event in events if event["name"] == "burst") == result.events
    hot = {event["name"] for event in events if event["name"].startswith("hot ")}
    assert len(hot) == 16 and all("(Node), " in name for name in hot)
    assert result.trace_lost == 0
    with pytest.raises(pdes.Error, match="cannot be written"):
        phold.run(trace="/no/such/folder/t", **SMALL)
    with pytest.warns(RuntimeWarning, match="/dev/full could not be written to its end"):
        phold.run(trace="/dev/full", **SMALL)


def test_a_name_that_is_no_json_is_written_as_one(tmp_path):
    @pdes.lp
    class Odd:
        def start(self, context):
            context.send_self(1, Beat())

        def beat(self, context, event: Beat):
            pass

    Odd.__pdes__.name = 'a "class" \\ of\nmine'

    @pdes.model(end=10)
    def odd(simulation, lps=2):
        simulation.add(Odd, lps)

    odd.run(trace=tmp_path / "t.json", plain=True)
    text = (tmp_path / "t.json").read_text()
    assert any('LP 0 (a "class" \\ of mine)' in event["name"] for event in json.loads(text)["traceEvents"])


# ---- What a progress function asks for.

def test_progress_asks_for_a_checkpoint_and_for_the_end(tmp_path):
    file, saved = tmp_path / "c", []

    def asks(*_):
        saved.append(file.exists())
        return "stop" if saved[-1] else "save"

    part = phold.run(end=1e9, progress=asks, interval=1e-3, checkpoint=file, lps=60, events_per_lp=2)
    assert part.stopped and saved[0] is False and saved[-1] is True
    assert part.checkpoints >= 2  # the one that was asked for, and at the end


@pytest.mark.parametrize("asked, said", [
    ("save", "there is no checkpoint to save the run in"),
    ("halt", "progress returns 'save' or 'stop', not 'halt'")])
def test_what_progress_cannot_ask_for_ends_the_run(asked, said):
    with pytest.raises(pdes.Error, match=f"^{said}$"):
        phold.run(end=1e9, progress=lambda *_: asked, interval=1e-3, lps=60, events_per_lp=2)


def test_what_progress_raises_is_all_that_is_said():
    with pytest.raises(pdes.Error, match="^ZeroDivisionError: division by zero$"):
        phold.run(end=1e9, progress=lambda *_: 1 / 0, interval=1e-3, lps=60, events_per_lp=2)


def test_no_trace_is_no_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    phold.run(end=1, lps=60, trace=None)
    assert not [*tmp_path.iterdir()]


# ---- Signals, to a process of its own.

PROGRAM = """
import signal
from models import phold
{before}
try:
    phold.run(end=1e9, lps=60, events_per_lp=2, interval=0.01, checkpoint={file!r}, plain={plain},
              progress=lambda *at: print("at", at[1], flush=True))
finally:
    print("cleaned up", signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1), flush=True)
"""


class Child:
    def __init__(self, file, plain=False, before=""):
        text = PROGRAM.format(file=file and str(file), plain=plain, before=before)
        self.run = subprocess.Popen([sys.executable, "-B", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.progress()

    def progress(self):
        """Until it says how far it is, some more times: it may have printed before."""
        return [self.run.stdout.readline() for _ in range(3)]

    def ends(self):
        try:
            output, errors = self.run.communicate(timeout=60)
        finally:
            self.run.kill()
        return output, errors


@pytest.mark.parametrize("plain", [False, True])
def test_sigterm_saves_a_run_and_ends_the_program(tmp_path, plain):
    file = tmp_path / "c"
    child = Child(file, plain)
    child.run.send_signal(signal.SIGTERM)
    output, errors = child.ends()
    assert (child.run.returncode, errors) == (143, "")
    last = output.splitlines()[-1]
    assert last in ("cleaned up 0 0", "cleaned up Handlers.SIG_DFL Handlers.SIG_DFL")
    again = phold.run(end=1e9, lps=60, events_per_lp=2, resume=file, plain=plain, interval=1e-3, progress=lambda *_: "stop")
    assert again.events > again.events_before > 0


def test_sigusr1_saves_a_run_that_goes_on(tmp_path):
    file = tmp_path / "c"
    child = Child(file)
    child.run.send_signal(signal.SIGUSR1)
    while not file.exists():
        assert child.progress()[-1].startswith("at ")
    assert all(line.startswith("at ") for line in child.progress()) and child.run.poll() is None
    child.run.send_signal(signal.SIGTERM)
    child.ends()
    assert child.run.returncode == 143


def test_a_run_that_cannot_be_saved_does_not_say_that_it_was():
    child = Child("/dev/full")
    child.run.send_signal(signal.SIGTERM)
    _, errors = child.ends()
    assert child.run.returncode == 1 and "No space left on device" in errors


class Last(NamedTuple):
    pass


@pdes.lp
class Ending:
    def start(self, context):
        context.send_self(1, Last())

    def fail(self, context, last: Last):
        signal.raise_signal(signal.SIGTERM)
        raise ValueError("bad luck")


@pdes.model(end=2)
def ending(simulation):
    simulation.add(Ending, 1)


def test_a_run_that_fails_when_sigterm_has_come_says_so(tmp_path):
    with pytest.raises(pdes.Error, match="bad luck"):
        ending.run(plain=True, checkpoint=tmp_path / "c")
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_without_a_checkpoint_sigterm_is_as_ever():
    child = Child(None)
    child.run.send_signal(signal.SIGTERM)
    output, _ = child.ends()
    assert child.run.returncode == -signal.SIGTERM and "cleaned up" not in output


def test_who_handles_a_signal_himself_goes_on_to(tmp_path):
    """It comes at any time: within a print, where another one would be an error."""
    child = Child(tmp_path / "c", before="import os; signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'mine'))")
    child.run.send_signal(signal.SIGTERM)
    while not any("mine" in line for line in child.progress()):
        assert child.run.poll() is None
    child.run.kill()
    child.ends()


def test_in_another_thread_no_signal_is_touched(tmp_path):
    """Python would refuse it there."""
    results = []

    def work():
        results.append(phold.run(end=50, lps=60, events_per_lp=2, checkpoint=tmp_path / "c"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results[0].reached == 50
