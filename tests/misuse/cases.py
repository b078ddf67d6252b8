"""Every misuse, and what each allocator answers.

A case is run by `misuse NAME NUMBERS` (of hmalloc's own API by `own_api`, writes outside of blocks by `overflow`).  An
answer is a word: of WORDS, the line that the program ends with; "quiet", it ends with 0 and says nothing; "any", this
allocator need not see it, but it must not crash; "fault", the bad access itself ends the program, by SIGSEGV, for the page
is inaccessible.  Without an answer a case is not run.
"""

import re
from dataclasses import dataclass

OURS = ("default", "checked", "hardened")
TAGS = "tags"  # the hardened library with HMALLOC_TAGS=1; answers as without, if no other is named
DESCRIBED = r"  (byte \d+ of the block|the block of|\d+ bytes (in front|behind)|behind the last|no block is there|a block was there once).*\n"

LARGE = "not a block, or freed already"
COMMON = {"large": LARGE, "large_inside": LARGE, "gone": LARGE}
INTERIOR = "points into a block, not to its start"
# What the words are in an allocator's language.
WORDS = {
    "default": {"double": "double free", "left": "double free, found when the block left the thread's cache",
                "never": "double free, or never a block", "inside": INTERIOR,
                "gone": "double free, or never a block", "unmapped": "double free, or never a block",
                "large_inside": INTERIOR, "foreign": "not a block of hmalloc", "misaligned": "misaligned pointer",
                "size": "freed with a size it was not allocated with"},
    "one_lock": COMMON | {"double": "freed already", "inside": INTERIOR, "misaligned": INTERIOR},
    "hmalloc_paper": COMMON | {"inside": INTERIOR, "misaligned": INTERIOR,
                               "not_shared": "not a shared block of hmalloc_paper"},
    "hoard": COMMON | {"double": "no live block: freed already, or never allocated", "inside": "not the start of a block",
                       "misaligned": "not the start of a block"},
    "vvmalloc": {"double": "is free: freed twice, or never handed out", "misaligned": "not a block of vvmalloc",
                 "foreign": "not a block of vvmalloc"}
    | dict.fromkeys(("inside", "large_inside"), "no block starts here, or its end has been overwritten")
    | dict.fromkeys(("gone", "unmapped"), "is free: freed twice, or never handed out"),
    "ar_malloc": COMMON | {"double": "freed already"} | dict.fromkeys(("inside", "misaligned"), "not a block of NAME"),
}
WORDS["checked"] = WORDS["default"] | {"double": WORDS["default"]["never"]}
WORDS["hardened"] = WORDS["checked"] | {"alignment": "freed with an alignment it was not allocated with",
                                        "behind": "written to behind its end", "in_front": "written to in front of its start",
                                        "after": "written to after it was freed"}
WORDS[TAGS] = WORDS["hardened"] | {"stale": "not the pointer that the block was handed out by: an earlier one, or made up"}
EVERYWHERE = {"foreign": "not a block of NAME", "unmapped": "not a block of NAME"}


def family_of(allocator: str) -> str:
    return allocator.partition("-")[0]


@dataclass(frozen=True)
class Case:
    program: str
    name: str
    numbers: tuple[str, ...]
    function: str  # the one that the line names
    answers: dict[str, str | None]

    @property
    def label(self) -> str:
        return " ".join([self.name, *self.numbers])

    @property
    def arguments(self) -> list[str]:
        units = {"K": 1 << 10, "M": 1 << 20}
        return [self.name, *(str(int(n[:-1]) * units[n[-1]]) if n[-1] in units else n for n in self.numbers)]

    def answer(self, allocator: str) -> str | None:
        """The most particular word there is: the variant's, the family's, everybody's of ours or of the others."""
        group = ("hardened", "ours") if allocator == TAGS else ("ours",) if allocator in OURS else ("others",)
        for name in (allocator.replace("-", "_"), family_of(allocator), *group, "everyone"):
            if name in self.answers:
                return self.answers[name]
        return None

    def line(self, allocator: str) -> re.Pattern | None:
        """Of the program's end, as a regular expression; None for an answer that is none of the words."""
        words = EVERYWHERE | WORDS[family_of(allocator)]
        said = "|".join(re.escape(words[word].replace("NAME", allocator))
                        for word in self.answer(allocator).split(" or ") if word in words)
        if not said:
            return None
        library, more = ("hmalloc", self.more()) if allocator in (*OURS, TAGS) else (allocator, "")
        return re.compile(rf"{library}: {self.function}\(0x[0-9a-f]+\): ({said})\n{more}")

    def more(self) -> str:
        """What ours say of the block on a second line."""
        return DESCRIBED if not {"foreign", "misaligned"} & {*self.answers.values()} else f"({DESCRIBED})?"


def case(name: str, numbers: str, everyone: str | None = None, *, program: str = "misuse", function: str | None = None,
         **answers: str) -> list[Case]:
    """One for each word of `numbers`, those of a call joined by colons; without any, one."""
    if function is None:
        first = name.partition("_")[0]
        function = {"realloc": "realloc", "usable": "malloc_usable_size"}.get(first, "free")
    answers = {"everyone": everyone, **answers}
    return [Case(program, name, tuple(call.split(":")) if call else (), function, answers)
            for call in numbers.split() or [""]]


UNSEEN_IN_A_CACHE = {"default": "any", "checked": "never", "hardened": "never"}

DOUBLE_FREE = [
    *case("df", "0 100", "double", hmalloc_paper="quiet"),  # a block in a cache keeps its flag (section 3.3)
    *case("df", "10 16 64 1000 2000", "double", ours="double or never", hmalloc_paper="quiet"),
    *case("df", "8192", ours="double or never"),
    *case("df", "20000", "large", ours="double or never", one_lock="double", vvmalloc="double", hmalloc_paper="quiet"),
    *case("df", "100000 1M", "gone"),
    *case("df", "2M 3M 64M", "unmapped"),
    *case("df_kept", "20000:16", ours="double or never"),
    *case("df_kept", "100000:16", "gone"),
    *case("df_kept", "2M:16 5M:16 5M:64K 5M:1M 2M:256K", "unmapped"),
    *case("df_delayed", "100:1 100:16", others="any", **UNSEEN_IN_A_CACHE),
    *case("df_delayed", "20000:16", others="any", **UNSEEN_IN_A_CACHE),
    *case("df_delayed", "64:1", hoard="double", vvmalloc="double"),
    *case("df_leaves_cache", "100:16 20000:16", others="any", default="left", checked="never", hardened="never"),
    *case("df_trimmed", "100", ours="never"),
    *case("df_trimmed", "64M", "unmapped"),
    *case("df_region_gone", "1M:60", "gone"),
    *case("df_region_gone", "20000:800", ours="gone"),
    # What says so in ar_malloc is the cache, when it gives back; one_lock knows only the last free of a class.
    *case("df_far", "100:100000", "double", ours="never", one_lock="quiet", hmalloc_paper="large", ar_malloc="quiet",
          ar_malloc_lock="double"),
    *case("df_last", "64:101", "double", ours="never", hmalloc_paper="large"),
    *case("df_flushed", "100:96 100:200", ar_malloc="double", ar_malloc_lock="double"),
    *case("df_merged", "100", vvmalloc="double"),
    *case("df_by_ended_thread", "64", ours="never"),
    # To vvmalloc a block that another thread freed looks like one in use.
    *case("df_by_ended_thread_trimmed", "100", "double", ours="never", hmalloc_paper="quiet", vvmalloc="quiet",
          vvmalloc_1="double", ar_malloc="quiet", ar_malloc_lock="double"),
    *case("df_by_live_thread", "100", others="any", **UNSEEN_IN_A_CACHE),
    *case("df_then_by_thread", "100", **UNSEEN_IN_A_CACHE),
    *case("df_reused", "100", "any", hardened="never"),  # the quarantine still has it
    *case("df_reused", "100000", hardened="gone"),
    *case("realloc_freed", "100:5000", "double", hmalloc_paper="quiet"),
    *case("realloc_freed", "100000:10", "gone"),
    *case("usable_freed", "100", checked="never", hardened="never", vvmalloc="double"),
    *case("usable_freed", "100000", ours="gone"),
]

FOREIGN = [
    *case("free_stack", "", "foreign"),
    *case("free_global", "", "foreign"),
    *case("free_text", "", "foreign"),
    # A small integer, an address where nothing is mapped, text, the kernel's, one that is not canonical.
    *case("free_made_up", "0x10 0x5a5a5a5a5a50 0x4141414141414140 0xffffffff81000000 0xdead000000000000", "foreign"),
    *case("free_made_up", "0xfffffffffffffff0", "foreign"),
    *case("free_made_up", "0xffffffffffffffff", ours="misaligned"),  # MAP_FAILED, never tested
    *case("free_made_up", " ".join(hex((1 << bit) + 0x200040) for bit in range(47, 63)), ours="foreign"),
    *case("free_high", " ".join(str(bit) for bit in range(47, 63)), "foreign"),
    *case("free_mapping", "0 8K", "foreign"),
    *case("free_filled_mapping", "69696", "foreign"),
    *case("free_masked_mapping", "4M:64K", "foreign"),
    *case("free_unmapped", "4K", "foreign"),
    *case("realloc_stack", "0 100 500", "foreign", hmalloc_paper="not_shared"),
    *case("realloc_global", "10", "foreign", hmalloc_paper="not_shared"),
    *case("usable_global", "", "foreign", hmalloc_paper="not_shared"),
    *case("usable_made_up", "0x5a5a5a5a5a50", "foreign", hmalloc_paper="not_shared"),
]

# An aligned block of hmalloc_paper starts within a larger one: so may any address.
PAPER_CANNOT_TELL = {"hmalloc_paper": "quiet"}
INSIDE = [
    *case("free_inside", "100:8 200:1 200:8", "misaligned"),
    *case("free_inside", "16:8 64:1 64:8 1000:1 1000:8", "misaligned"),
    *case("free_inside", "20000:1 20000:8 100000:1 100000:8 2M:1 2M:8", ours="misaligned"),
    *case("free_inside", "64:16 100:16 100:64 200:64 1000:16 1000:512", "inside", **PAPER_CANNOT_TELL),
    *case("free_inside", "20000:16 20000:4K", "large", ours="inside", one_lock="inside", vvmalloc="inside",
          **PAPER_CANNOT_TELL),
    *case("free_inside", "100000:16 100000:4K 160K:64K 1M:4K 2M:16", "large_inside"),
    *case("free_inside", "16M:4M 20M:8M", "foreign", vvmalloc="inside", ours="inside or foreign"),
    *case("free_inside", "20M:2016K", "large_inside", ours="inside or foreign"),
    *case("free_inside_freed", "160K:64K", ours="never", hardened="inside"),
    *case("free_inside_zeros", "1000:16 1000:512", vvmalloc="double"),
    *case("realloc_inside", "200:16", "inside", **PAPER_CANNOT_TELL),
    *case("usable_inside", "100:16 200:32", ours="inside", one_lock="inside", hoard="inside", vvmalloc="inside",
          ar_malloc="inside"),
    # One_lock and the cache of ar_malloc keep no state of a block, hmalloc_paper none of those never handed out.
    *case("free_unallocated", "64:32K", "double", ours="never", hoard="inside", one_lock="quiet", hmalloc_paper="quiet",
          ar_malloc="quiet", ar_malloc_lock="double"),
    *case("free_inside", "64:32000", ours="never or double"),  # as far from the start, in the same superblock
    *case("free_next", "100", hoard="double", hardened="misaligned"),  # there the block ends where the request does
    # The header of a superblock or slab, and of the next, which nobody has used.
    *case("free_header", "8K:0", hoard="inside"),
    *case("free_header", "8K:8256", hoard="inside"),
    *case("free_header", "64K:0", one_lock="foreign", ar_malloc="foreign"),
    *case("free_header", "64K:16 ", hmalloc_paper="inside"),
    *case("free_header", "64K:64K 64K:65552", one_lock="foreign"),
    *case("free_header", "64K:1M", hmalloc_paper="foreign"),
    *case("free_moved", "3M", ours="never"),
    *case("free_overwritten", "100", vvmalloc="inside", hardened="behind"),
]

# The sized free reads no metadata, except in the checked library, and is exact in the hardened one.
SIZE_IS_CHECKED = {"checked": "size", "hardened": "size"}
SIZED = [
    *case("free_sized_wrong", "100:5000 3M:100", "any", **SIZE_IS_CHECKED, function="free_sized"),
    *case("free_sized_wrong", "0:1 100:99 100:101 40000:40001 3M:3145727", hardened="size", function="free_sized"),
    *case("free_aligned_sized_wrong", "128:4096", "any", **SIZE_IS_CHECKED, function="free_aligned_sized"),
    *case("free_aligned_otherwise", "128:32 128:128", hardened="alignment", function="free_aligned_sized"),
]


OWN_API = [entry for function, answer, names in (
    ("hm_free", "foreign", "hm_free_made_up"),
    ("hm_shared_free", "double", "shared_df"),
    ("hm_local_free", "double", "local_df"),
    ("hm_local_free", "never", "local_df_after_thread"),
    ("hm_local_free", "inside", "local_free_inside_16 local_free_inside_32"),
    ("hm_local_free", "misaligned", "local_free_inside_8 local_free_inside_1"),
    ("hm_local_free", "foreign", "local_free_global local_free_stack"),
    ("hm_local_realloc", "double", "local_realloc_freed"))
           for name in names.split() for entry in case(name, "", program="own_api", function=function, ours=answer)]
OWN_API += [
    *case("hm_free_sized_wrong", "", program="own_api", function="hm_free_sized", default="any", **SIZE_IS_CHECKED),
    *case("local_df_by_thread", "", program="own_api", function="hm_local_free", default="any", checked="double",
          hardened="double"),
    *case("local_free_sized_near", "", program="own_api", function="hm_local_free_sized", default="any", **SIZE_IS_CHECKED),
    *case("local_free_sized_wrong", "", program="own_api", function="hm_local_free_sized", default="any", **SIZE_IS_CHECKED),
    *case("shared_free_sized_wrong", "", program="own_api", function="hm_shared_free_sized", default="any", **SIZE_IS_CHECKED),
]

# Each tries many overflows in children of its own and judges them itself.
OVERFLOW = [entry for name in ("small", "large", "huge", "into_next_huge")
            for entry in case(name, "", program="overflow", ours="quiet")]

# What only the hardened library promises to see.  N bytes are asked for; M are written behind them, in front of them, or after
# the block was freed, from there on.
WRITES = [
    *case("written_behind", "0:1 1:1 24:1 100:1 100:12 1000:8 5000:1 32760:8", hardened="behind"),
    *case("written_behind", "100:16 16384:1", hardened="behind", tags="fault"),  # behind its last 16 bytes
    *case("written_behind", "100:4K 20000:20000", hardened="behind or fault"),  # up to the end of a region
    *case("written_behind", "32K:1 40000:1", hardened="fault"),
    *case("written_behind", "3145729:1", hardened="behind"),  # 15 bytes are left of its last page
    *case("written_behind", "40000:8K 3M:4K", hardened="fault"),
    *case("written_far_behind", "100:1M 20000:1M", hardened="fault"),  # sooner or later there is a guard
    *case("zero_behind", "24 100 1000", hardened="behind"),
    *case("zero_behind", "20000", hardened="behind", tags="fault"),
    *case("written_in_front", "24:1 100:8 1000:16 5000:1", hardened="in_front", tags="fault"),
    *case("written_in_front", "40000:8", hardened="in_front"),
    *case("written_in_front", "40000:8K", hardened="in_front or fault"),  # as the page is large or small
    *case("written_in_front", "1M:4K", hardened="fault"),
    *case("realloc_overwritten", "100:200 100:50 1000:3000", hardened="behind"),
    *case("written_after_free", "16 100 1000 20000", hardened="after", tags="fault"),
    *case("written_after_free", "40000 100000", hardened="after"),
    *case("written_after_free", "160K 3M", hardened="fault"),
    *case("written_after_reuse", "100 1000", hardened="after", tags="fault", function="malloc"),
    *case("written_after_reuse", "40000", hardened="after"),
    *case("written_after_free_by_thread", "100", hardened="after", tags="fault", function="malloc"),
]

CASES = DOUBLE_FREE + FOREIGN + INSIDE + SIZED + WRITES + OWN_API + OVERFLOW
LINKED = ("own_api",)  # with the library, for its fast paths are inline
