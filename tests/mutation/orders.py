"""Weakens each memory order of the core to relaxed, one at a time, and asks for a checker that notices.

    orders.py --root R --work W [--tsan] [--only PART]

The checker is herd7 on the litmus tests that the changed sources make (tests/litmus); without a herd7, that these tests are
no longer the committed ones.  An order that no litmus test needs stands in ORDERS_WITH_A_REASON; one in neither, so a new one
too, fails.  --tsan, slow: those whose reason is ThreadSanitizer are weakened for its tests, which must notice.
Exit status: 0 each has a killer or a reason, 1 not, 77 no compiler for AArch64 or no qemu.
"""
import argparse
import dataclasses
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "litmus"))
import litmus  # noqa: E402
import mutants  # noqa: E402
import mutate  # noqa: E402
import watch  # noqa: E402

ORDER = re.compile(r"memory_order(?:_|::)(acquire|release|acq_rel|seq_cst|consume)\b|"
                   r"__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL|SEQ_CST|CONSUME)\b")
CALL = re.compile(r"\.(load|store|exchange|compare_exchange_\w+|fetch_\w+|test_and_set)\(")
FENCE = re.compile(r"atomic_thread_fence|__sync_")
TSAN = "for ThreadSanitizer, whose build alone "
GUARDED = "as the tests of guarded blocks show to ThreadSanitizer: "
MEMBARRIER = "for the system's barrier in claims.cc, which stands between the processors' accesses: "
LOCKED = "for the reader: whoever sees a claim waits for the lock of the claims, "
USED = "as row 2, one word for what its thread did before; no test of its own, because the barrier hides it but for a moment"
CHILD = "for the child of a fork, which must find one thread's stores in the order of the program: "
# (file, what the line says) -> why no litmus test needs it.  One that begins with TSAN or GUARDED must be noticed by its tests.
ORDERS_WITH_A_REASON = {
    ("src/base/address_map.h", "__atomic_store_n(&units_[address_of(chunk) / kChunk]"):
        CHILD + "a chunk's slices are free before it is open; others get a pointer into it from the program (row 7)",
    ("src/core/block_state.h", "(void)__atomic_load_n(reinterpret_cast<uint8_t*>(first_)"):
        TSAN + "has this load: it pairs a release with an acquire of the same address only, not of the word around it",
    ("src/guard/guarded_place.h", "kBusy, std::memory_order_acquire"):
        GUARDED + "what is known of the last block there is written over",
    ("src/guard/guarded_place.h", "state_.store(kFreed, std::memory_order_release)"):
        GUARDED + "the same, by whoever was before",
    ("src/core/current_heap.cc", "__atomic_store_n(&entry"):
        "for who reads the entry and adds it to an address, and what is there: a processor keeps that order for the reader",
    ("src/base/lock.cc", "std::atomic_signal_fence(std::memory_order_seq_cst)"):
        "for the thread's own signal handlers: none may find a lock of the thread that the count leaves out",
    ("src/base/lock.cc", "word_.load(kThreadSanitizer ?"):
        "for the fuzzers under ThreadSanitizer: it does not see that a fork comes after all that it copies",
    ("src/base/process.h", "inline void keep_order()"): CHILD + "that is what it is for",
    ("src/threads/claims.h", "std::atomic_signal_fence(std::memory_order_seq_cst)"):
        MEMBARRIER + "the compiler keeps the store of in_use before the load of claim",
    ("src/threads/claims.h", "heap.claim.load(std::memory_order_acquire)"): LOCKED + "taken before the heap is used",
    ("src/threads/claims.cc", "Claim::kEmptied, std::memory_order_release"): LOCKED + "let go of after the claim",
    ("src/threads/claims.h", "heap.in_use.store(false, std::memory_order_release)"): USED,
    ("src/threads/claims.cc", "heap.in_use.load(std::memory_order_acquire)"): USED,
    ("src/large/extent.h", "void set_state("):
        CHILD + "start and bytes of a descriptor are written before it is in use (E5)",
    ("src/large/extent.h", "void set_start("): CHILD + "a descriptor owns nothing when its start changes (E5)",
    ("src/large/extent.h", "void set_bytes("): CHILD + "whoever passes bytes on lets go of them first (E5)",
    ("src/large/extent_table.cc", "store(kArena,"): CHILD + "the arena is known before anything is left of it",
    ("src/large/extent_table.cc", "std::atomic_ref(slabs_)"): CHILD + "a slab is whole before it is in the list",
}


@dataclasses.dataclass(frozen=True)
class Site:
    file: str
    line: int
    text: str     # of the line
    start: int    # in the file
    end: int
    order: str

    def name(self):
        return f"{self.file}:{self.line} {self.order}"


def without_comments(text):
    """The same length, so that places stay places."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def core(root):
    found = [*(root / "src").rglob("*.h"), *(root / "src").rglob("*.cc"), *(root / "include/hmalloc").rglob("*.h*")]
    return sorted(path for path in found if "baselines" not in path.parts)


def sites_of(path, root):
    text = path.read_text()
    for match in ORDER.finditer(without_comments(text)):
        line = text.count("\n", 0, match.start()) + 1
        yield Site(str(path.relative_to(root)), line, text.splitlines()[line - 1].strip(), match.start(), match.end(), match[0])


def arguments(text, start):
    """What stands between the parenthesis that opened just before `start` and its partner."""
    depth, at = 1, start
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start:at - 1]


def unsaid(path, root):
    """Atomic operations without an order, which are sequentially consistent; and fences between threads, which this gate
    does not know.  A signal fence orders nothing between threads: its order needs a reason like any other."""
    text = without_comments(path.read_text())
    atomics = set(re.findall(r"std::atomic<[^;{}()]*?>\s+(\w+)\s*[;{\[]", text))
    found = [m for m in CALL.finditer(text) if "memory_order" not in arguments(text, m.end())]
    found += FENCE.finditer(text)
    for name in atomics:
        found += re.finditer(rf"(?:\+\+|--)\s*{name}\b|\b{name}(?:\[\w+\])?\s*(?:\+\+|--|[-+|&^]?=(?!=))", text)
    return [f"{path.relative_to(root)}:{text.count(chr(10), 0, m.start()) + 1} says no order: {m[0]}" for m in found]


def weakened(site, text):
    relaxed = "__ATOMIC_RELAXED" if site.order.startswith("__") else "memory_order_relaxed"
    return text[:site.start] + relaxed + text[site.end:]


def reason_of(site):
    reasons = ORDERS_WITH_A_REASON.items()
    return next((why for (file, words), why in reasons if file == site.file and words in site.text), None)


class Litmus:
    """The litmus tests of the sources as they are, and of a change to them."""

    def __init__(self, options):
        self.options, self.command = options, litmus.herd()
        self.target = next(target for target in litmus.TARGETS if target.name == "aarch64-lse")
        self.right = self.tests(options.work / "unchanged", None)

    def tests(self, work, change):
        traces = watch.trace(self.target, self.options.root, work, change=change)
        made = litmus.compose.compose(traces, self.target.machine, self.target.name)
        return {test.name: test for test in made if not test.fault}

    def noticed(self, site):
        """What notices the weakened order, or None."""
        work, tree = self.options.work / "changed", self.options.work / "tree"
        for folder in (work, tree):
            shutil.rmtree(folder, ignore_errors=True)
        changed = tree / site.file
        changed.parent.mkdir(parents=True)
        changed.write_text(weakened(site, (self.options.root / site.file).read_text()))
        today = self.tests(work, watch.Change(tree, site.file, self.options.work / "unchanged"))
        differ = [test for name, test in today.items() if test.text != self.right[name].text]
        if self.command is None:
            return f"no longer as committed: {', '.join(test.scenario for test in differ)}" if differ else None
        said = [(test.scenario, litmus.verdict(self.command, work, test)[0]) for test in differ]
        wrong = [name for name, word in said if word == "Sometimes"]
        return f"herd7: {', '.join(wrong)}" if wrong else None


def ask_tsan(copy, site):
    path = copy.tree / site.file
    original = path.read_text()
    try:
        path.write_text(weakened(site, original))
        return mutate.noticed(copy, (mutants.TSAN_UNIT, mutants.TSAN_STRESS))[0]
    finally:
        path.write_text(original)


def judge(site, checker, copy):
    """Prints a line; whether it is all right."""
    reason = reason_of(site)
    killer = None if reason else checker.noticed(site)
    asked = copy is not None and (reason or "").startswith((TSAN, GUARDED))
    by_tsan = ask_tsan(copy, site) if asked else None
    fine = bool(killer or reason) and bool(by_tsan or not asked)
    said = killer or reason or "NOBODY NOTICED, and no reason is written"
    also = f"; ThreadSanitizer: {by_tsan or 'silent'}" if asked else ""
    print(f"{'ok  ' if fine else 'FAIL'} {site.name()}: {said}{also}", flush=True)
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--tsan", action="store_true")
    parser.add_argument("--only", default="", help="orders in files with this in their names")
    options = parser.parse_args()
    options.root, options.work = options.root.resolve(), options.work.resolve()
    complaints = [line for path in core(options.root) for line in unsaid(path, options.root)]
    sites = [site for path in core(options.root) for site in sites_of(path, options.root)]
    complaints += [f"a reason for what is no more: {file}: {words}" for file, words in ORDERS_WITH_A_REASON
                   if not any(site.file == file and words in site.text for site in sites)]
    print("\n".join(complaints) or f"{len(sites)} orders", flush=True)
    target = litmus.TARGETS[1]
    if litmus.missing(target):
        print(f"skipped: no {' and no '.join(litmus.missing(target))}")
        return 1 if complaints else litmus.SKIPPED
    checker = Litmus(options)
    if checker.command is None:
        print("no herd7: a test that is no longer as committed counts as noticed")
    copy = mutate.Copy(options.root, options.work / "tsan") if options.tsan else None
    verdicts = [judge(site, checker, copy) for site in sites if options.only in site.file]
    print(f"{sum(verdicts)} of {len(verdicts)} have a killer or a reason")
    return 0 if all(verdicts) and not complaints else 1


if __name__ == "__main__":
    sys.exit(main())
