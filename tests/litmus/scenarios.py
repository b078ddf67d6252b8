"""The hand-overs of docs/design.md as litmus tests: what the traced functions do, between what the program does.

A thread is a list of accesses.  W and R are the program's to its block or to what it hands a pointer over by; a name in
quotes stands for all accesses of that window of probes.cc, with "..." behind it for those up to its first atomic one.
`wrong` is what must never be seen, in herd's words, but for 1:s, which is thread 1's last read of s; that exclusive pairs succeeded is added to it.

Threads are straight lines: the path on which the hand-over takes place.  Branches and address arithmetic are left out, so
no order rests on a dependency that another compiler need not keep.
"""
import dataclasses

from access import Access

ALL_TAKEN = 0x0101010101010101
ONE_FREE = 0x0101010101010001     # block 1
SIX_FREE = 0x0100010101010101     # block 6
BOTH_FREE = 0x0100010101010001
ME, OTHER, WAITS = 17, 18, 1 << 31   # as in probes.cc
NO_KEY = (1 << 64) - 1


def W(word, value, size=8):
    return Access("store", word, size=size, value=value)


def R(word, size=8):
    return Access("load", word, size=size)


def give(word):
    """The program's hand-over of a pointer: its own lock or atomic."""
    return Access("store", word, release=True, value=1)


def get(word):
    return Access("load", word, acquire="A")


# ---- Seeded faults: threads -> threads

def changed(threads, thread, change):
    return [change(accesses) if number == thread else accesses for number, accesses in enumerate(threads)]


def relaxed(thread, word):
    """The orders of the thread's accesses to the word are dropped."""
    def weaken(access):
        return dataclasses.replace(access, acquire="", release=False) if access.word == word else access
    return lambda threads: changed(threads, thread, lambda accesses: [weaken(a) for a in accesses])


def first(thread, word, kinds=("store", "swap", "cas", "ldx", "stx")):
    """The accesses to the word come before all others: what a compiler may do with a relaxed one."""
    def order(accesses):
        return sorted(accesses, key=lambda a: not (a.word == word and a.kind in kinds))
    return lambda threads: changed(threads, thread, order)


def last(thread, word, kinds=("store", "swap", "cas", "ldx", "stx", "load")):
    def order(accesses):
        return sorted(accesses, key=lambda a: a.word == word and a.kind in kinds)
    return lambda threads: changed(threads, thread, order)


def split(thread, word):
    """A load and a plain store in place of an atomic exchange or compare and exchange."""
    def parts(access):
        if access.word != word or access.kind not in ("swap", "cas", "ldx", "stx"):
            return [access]
        load = dataclasses.replace(access, kind="load", value=None, expected=None, release=False)
        store = dataclasses.replace(access, kind="store", acquire="", release=False, expected=None)
        return ([load] if access.kind != "stx" else []) + ([store] if access.kind != "ldx" else [])
    return lambda threads: changed(threads, thread, lambda accesses: [p for a in accesses for p in parts(a)])


def whole_word(thread, word):
    """One store of the word in place of those of its bytes."""
    def widen(accesses):
        stores = [a for a in accesses if a.word == word and a.kind == "store"]
        wide = dataclasses.replace(stores[0], offset=0, size=8, value=ALL_TAKEN)
        return [wide if a is stores[0] else a for a in accesses if a is stores[0] or a not in stores]
    return lambda threads: changed(threads, thread, widen)


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    row: str       # of the table in docs/design.md
    says: str
    words: dict    # name -> (bytes, what it holds before)
    threads: list
    wrong: str
    faults: dict   # name -> change


BLOCK = {"x": (8, 0), "y": (8, 0)}   # two words of a block: one that the giver writes, one that it only reads
GAVE, TOOK = [R("y"), W("x", 1)], [R("x"), W("y", 1)]
LATE = "(1:x=0 \\/ 0:y=1)"           # the taker comes before the giver's last accesses
STATES = {"s": (8, ALL_TAKEN)}
LOCK = {"l": (4, OTHER)}


def lock_scenario(name, window, says, new):
    return Scenario(
        f"lock_{name}", "5, 6, 10 to 13", says, LOCK | BLOCK, [[*GAVE, "unlock"], [window, *TOOK]],
        f"1:l=0 /\\ l={new} /\\ {LATE}",
        {"no_release": relaxed(0, "l"), "no_acquire": relaxed(1, "l"),
         "unlocked_first": first(0, "l", ("swap", "ldx", "stx"))})


BLOCKS = [
    Scenario("give_back", "2", "a byte is given back, a word of eight is swept", STATES | BLOCK,
             [[*GAVE, "give_back"], ["free_mask", *TOOK]], f"1:s={ONE_FREE:#x} /\\ {LATE}",
             {"no_release": relaxed(0, "s"), "no_acquire": relaxed(1, "s"),
              "given_first": first(0, "s")}),
    Scenario("two_givers", "2", "two bytes of one word, by two threads", STATES | BLOCK,
             [[W("x", 1), "give_back"], ["free_mask", R("x"), R("y")], [W("y", 1), "give_back_6"]],
             f"1:s={BOTH_FREE:#x} /\\ (1:x=0 \\/ 1:y=0)",
             {"no_release": relaxed(2, "s"), "no_acquire": relaxed(1, "s"),
              "given_first": first(2, "s")}),
    Scenario("take_word", "1, 3", "eight blocks are taken by one store; one is handed over and given back",
             {"s": (8, 0), "g": (8, 0)}, [["free_mask", "take_all", give("g")], [get("g"), "give_back"]],
             f"1:g=1 /\\ ~(s={ONE_FREE:#x})",
             {"taken_after_it_was_handed_over": last(0, "s", ("store",))}),
    Scenario("take_bytes", "3", "two free blocks of a word are taken while another thread gives back a third",
             {"s": (8, 0x0101010101000001)}, [["free_mask", "take_two"], ["give_back_6"]], f"~(s={SIX_FREE:#x})",
             {"taken_by_a_word": whole_word(0, "s")}),
    Scenario("retake", "1 to 3", "given back, swept, taken again, handed over, and given back by a third thread",
             STATES | {"x": (8, 0), "g": (8, 0)},
             [[W("x", 1), "give_back"], ["free_mask", "take", give("g")], [get("g"), W("x", 2), "give_back"]],
             f"1:s={ONE_FREE:#x} /\\ 2:g=1 /\\ (~(x=2) \\/ ~(s={ONE_FREE:#x}))",
             {"no_release": relaxed(0, "s"), "given_first": first(0, "s")}),
    Scenario("reclaim", "4", "the last block is given back; its superblock goes to its chunk and loses its descriptor",
             {"s": (8, 1 << 8), "d": (4, 1 << 20)}, [["free"], ["reclaim"]], "1:s=0 /\\ 0:d=0",
             {"no_release": relaxed(0, "s"), "no_acquire": relaxed(1, "s"),
              "looked_at_after": last(0, "d")}),
    Scenario("address_map", "7", "a chunk is entered in the map, and a pointer into it handed over",
             {"m": (1, 0), "g": (8, 0)}, [["map_set", give("g")], [get("g"), "map_kind"]], "1:g=1 /\\ 1:m=0",
             {"handed_over_without_an_order": relaxed(0, "g"), "entered_late": last(0, "m")}),
    Scenario("slice_kind", "8", "a superblock is formatted while statistics look at its descriptor",
             {"k": (1, 0), "d": (4, 0)}, [["format"], ["kind", R("d", 4)]], "1:k=1 /\\ 1:d=0",
             {"no_release": relaxed(0, "k"), "no_acquire": relaxed(1, "k"),
              "kind_first": first(0, "k")}),
]
EXTENTS = [
    Scenario("extent_leaf", "14", "a leaf of the table is made (memset writes its zeros) while somebody probes into it",
             {"t": (8, 0), "e": (8, 7)}, [[W("e", 0), "leaf"], ["find"]], "1:t=1 /\\ 1:e=7",
             {"no_release": relaxed(0, "t"), "no_acquire": relaxed(1, "t"),
              "known_first": first(0, "t")}),
    Scenario("extent", "14", "an extent gets its descriptor and is entered, and found by somebody else",
             {"e": (8, 0), "b": (8, 0)}, [["extent"], ["find", R("b")]], "1:e=2 /\\ 1:b=0",
             {"no_release": relaxed(0, "e"), "no_acquire": relaxed(1, "e"),
              "entered_first": first(0, "e")}),
]


def key_scenario(name, window, says):
    return Scenario(f"thread_key_{name}", "17", says, {"k": (8, NO_KEY), "x": (8, 0)},
                    [[W("x", 1), "make_key"], [window, R("x")]], f"~(1:k={NO_KEY:#x}) /\\ 1:x=0",
                    {"no_release": relaxed(0, "k"), "no_acquire": relaxed(1, "k"), "known_first": first(0, "k")})


PROCESSES = [
    key_scenario("known", "watch", "the C library has made a key (x), and another thread uses it"),
    key_scenario("late", "make_key_late", "two threads make a key (x), and one's is used by both"),
    Scenario("repair", "18", "one thread of a child repairs while another waits", {"p": (4, 0), "i": (4, 0)},
             [["repair"], ["repair_by_other", R("i", 4)]], "1:p=4 /\\ 1:i=0",
             {"no_release": relaxed(0, "p"), "no_acquire": relaxed(1, "p"),
              "said_before_it_is_done": first(0, "p", ("store",))}),
]
LOCKS = [
    lock_scenario("free", "lock", "the lock is free when it is asked for", ME),
    lock_scenario("tried", "try_lock", "the lock is free when somebody tries it", ME),
    lock_scenario("spinning", "lock_spinning", "it becomes free while its next holder probes at it", ME),
    lock_scenario("woken", "lock_woken", "its next holder has slept, and takes it with the mark", ME | WAITS),
    Scenario("lock_exclusion", "5, 6, 10 to 13", "two threads ask for it at once", {"l": (4, 0)}, [["lock"], ["lock"]],
             "0:l=0 /\\ 1:l=0", {"taken_by_load_and_store": split(0, "l")}),
    Scenario("lock_mark", "5, 6, 10 to 13", "one goes to sleep while the other lets go: the mark is seen, or not set",
             LOCK, [["unlock"], ["lock_marking..."]], f"1:l={OTHER} /\\ 0:l={OTHER}",
             {"let_go_by_load_and_store": split(0, "l"), "marked_by_load_and_store": split(1, "l")}),
]
SCENARIOS = BLOCKS + EXTENTS + PROCESSES + LOCKS
