"""Names of functions as people say them, and which functions only pass on what they got from malloc."""

import re
from contextlib import suppress
from functools import cache

OTHER_THREADS = "other threads"  # the row of those that the library had no row for

_OPERATOR = re.compile(r"\boperator\s*(new\b(\[\])?|delete\b(\[\])?|\(\)|\[\]|[-+*/%^&|~!=<>,]+|\"\"\s*\w+|[^()]+(?=\())")
_CLONE = re.compile(r"\.(part|isra|constprop|cold|llvm|lto_priv|resolver)\b.*$|\.\d+$|@.*$")
_HIDDEN = 0xE000  # letters that no name has
# What follows is compared with names as `shorten` makes them.
_WRAPPERS = re.compile(
    r"operator (new|delete)(\[\])?"
    r"|(__libc_|__interceptor_)?(malloc|calloc|realloc|reallocarray|free|cfree)"
    r"|(__libc_|__interceptor_)?(memalign|aligned_alloc|posix_memalign|p?valloc)"
    r"|_*(str|wcs)n?dup|_*(IO_)?v?asprintf(_chk)?"
    r"|(std|__gnu_cxx|__cxxabiv1)::.*"
    r"|[xz]_?(try)?(malloc|calloc|realloc|reallocarray|free|strn?dup|memdup)\w*"
    r"|g_(try_)?(malloc|realloc|free)\w*|g_slice_(alloc|free)\w*|g_(strn?dup|memdup2?)"
    r"|_?Py(Mem|Object)_(Raw|Debug)?(Malloc|Calloc|Realloc|Free)"
    r"|(alloc|core)::.*|__?r(ust|dl|g)_(alloc|realloc|dealloc|alloc_zeroed)")
# The allocator itself, where it is linked into the program or inline there.
_OWN = re.compile(r"hm_(malloc|calloc|realloc|aligned_alloc|free|free_sized|(shared|local|cache)_\w+)|hm::.*")
_RUST_WRAPPERS = ("<alloc::", "<core::")
# Which of them a program has that has taken the advice already.
TAKEN = re.compile(r"hm_(local_(alloc|realloc|cache_)|cache_alloc|cache_refill_|shared_alloc)")


def printable(text: str) -> str:
    """Names come from outside: what would move a terminal's cursor, or the order of its letters, is shown as its code."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@cache  # a name is on many stacks
def shorten(name: str) -> str:
    """`feed` of `void feed<Server>(Server&, int) const [clone .cold]`: no arguments, of templates or of functions."""
    words = []

    def hide(match: re.Match) -> str:  # what has brackets or spaces of its own
        words.append(match[0])
        return chr(_HIDDEN + len(words) - 1)

    text = re.sub(r"\(anonymous namespace\)::|\s*\[[^][]*\]$|\[abi:\w+\]", "", name)
    text = _OPERATOR.sub(hide, text)
    text = _outside(_outside(text.replace("->", ""), "<>"), "()")
    text = re.sub(r"(\s*(const|volatile|noexcept|&&?))+$", "", text.rstrip())
    text = text.rpartition(" ")[2].removeprefix("::").removeprefix("__GI_")  # behind what it returns; a name within glibc
    text = _CLONE.sub("", re.sub(r"\{(lambda|unnamed type)[^}]*\}", r"{\1}", text).replace("::::", "::"))
    return "".join(words[ord(c) - _HIDDEN] if _HIDDEN <= ord(c) < _HIDDEN + len(words) else c for c in text) or name


def _outside(text: str, brackets: str) -> str:
    kept, depth, (opening, closing) = [], 0, brackets
    for c in text:
        if c == opening:
            depth += 1
        elif c == closing:
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(c)
    return "".join(kept)


class Wrappers:
    """Functions to be passed over: of the allocator's own, as the profile has them, all that they call as well."""

    def __init__(self, skip: re.Pattern | None = None, own_functions: str = "") -> None:
        self._skip, self._own = skip, None
        with suppress(re.error, OverflowError, RecursionError):
            self._own = re.compile(own_functions) if own_functions else None

    def is_own(self, full: str) -> bool:
        return bool(_OWN.fullmatch(shorten(full)) or (self._own and self._own.fullmatch(full)))

    def passes_on(self, full: str) -> bool:
        short = shorten(full)
        return bool(_WRAPPERS.fullmatch(short) or full.startswith(_RUST_WRAPPERS)
                    or (self._skip and self._skip.search(short)))
