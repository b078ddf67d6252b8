"""Tests of glibc that cannot be run on another allocator, that want something, or that end otherwise on hmalloc."""

import re

HOOKS = "hooks of malloc, which glibc keeps for programs of before 2.34 alone"
STATIC = "linked without shared objects: no preload reaches it, and it brings a malloc of its own"
DEBUG = "of libc_malloc_debug.so, a malloc of glibc's own with the exact size of each block (MALLOC_CHECK_)"
LEFT_OUT = {
    "tst-compathooks-off": HOOKS,
    "tst-compathooks-on": HOOKS,
    "tst-mallocstate": "the heap of an Emacs dumped with glibc's malloc of before 2.25 (malloc_set_state)",
    "tst-dynarray-at-fail": "the words of an abort inside libc, which it finds in its own build alone; allocates nothing",
    "tst-interpose-static-nothread": STATIC,
    "tst-interpose-static-thread": STATIC,
    "tst-malloc-usable": DEBUG,
    "tst-malloc-usable-tunables": DEBUG,
    "tst-safe-linking": "overwrites the links of glibc's tcache and fastbins, and waits for glibc's words about it",
}
# mcheck has no test of its own: glibc's build runs them all once more with it.  tst-mtrace, tst-mxfast, tst-tcfree* and
# tst-malloc-tcache-leak were written for what is inside glibc, and hold for any allocator as they are here.

ENVIRONMENT = {
    # Its own limit leaves 2 MB of addresses: less than hmalloc's first region.
    "tst-dynarray-fail": {"TEST_RLIMIT_AS": "160"},
}

# How a test ends on hmalloc if not as on glibc: (test, library or any): (what it says, why).
DIFFERS = {
    ("tst-dynarray-fail", ""): (
        re.compile(r"not true: !dynarray_(int|str)_(finalize|resize) "),
        "it fills the heap with blocks of 4104 and 8 bytes, and expects that no other size can be had then: superblocks "
        "of other classes still have free blocks"),
    ("tst-malloc-backtrace", ""): (
        re.compile("got `Segmentation fault', need `Aborted'"),
        "it writes in front of the first block of a region, where glibc has a size and hmalloc a page that cannot be "
        "touched: the write itself ends the program, earlier than the test asks for"),
    ("tst-malloc-backtrace", "libhmalloc-hardened.so"): (
        re.compile("Expected signal 'Aborted' from child, got none|got `Segmentation fault', need `Aborted'"),
        "it writes in front of a block that it has freed, and ends: the hardened library hands out neighbours in random order, so "
        "what lies there is most often a block that nobody has had yet, and is looked at when somebody gets it"),
    ("tst-malloc-stats-cancellation", ""): (
        re.compile(r"\AFAIL: malloc_stats output incomplete\n(?!FAIL)"),
        "it looks for glibc's words in the output of malloc_stats; that the thread is cancelled after it, which is the "
        "test, holds"),
    ("tst-tcfree2", "libhmalloc.so"): (
        re.compile("Expected signal 'Aborted' from child, got none"),
        "the double free of a block that was freed 19 calls before: the default library does not promise to see it, "
        "the checked one does (docs/design.md, double frees)"),
}
