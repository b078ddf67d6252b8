"""python -m hmalloc [--hardened] ARGUMENTS: runs `python ARGUMENTS` with its memory from hmalloc.

  python -m hmalloc script.py one two        a script; or -m MODULE, -c CODE, nothing at all: whatever Python takes
  python -m hmalloc --hardened script.py     on the library that is against attackers

The process stays the same one.  PYTHONMALLOC is set to malloc, unless it is set already.  Children inherit both that and
LD_PRELOAD, so processes that the program starts run on hmalloc, too.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from typing import NoReturn

_LIBRARIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")


def _die(message: str) -> NoReturn:
    print(f"hmalloc: {message}", file=sys.stderr)
    sys.exit(2)


def _interpreter_options() -> list[str]:
    """What stood between `python` and `-m hmalloc`, or between it and the script that called main()."""
    if not hasattr(sys, "orig_argv"):  # before Python 3.10
        return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined, no-any-return]
    *before, last = sys.orig_argv[1:len(sys.orig_argv) - len(sys.argv[1:])]
    if sys.modules["__main__"].__spec__ is None:
        return before
    # `-m hmalloc`, `-um hmalloc`, `-mhmalloc`
    option = (last.removesuffix("hmalloc") or before.pop())[:-1]
    return before + [option] * (option != "-")


def _machine(program: str) -> bytes:
    with open(program, "rb") as file:
        return file.read(20)[18:]


def _require_usable(library: str) -> None:
    """The loader only warns of what it cannot preload, and goes on without: here that is an error."""
    for name in [name for name in os.environ if name.startswith("HMALLOC_")]:
        del os.environ[name]  # or the library would speak of them now, too
    try:
        if _machine(library) != _machine("/proc/self/exe"):
            _die(f"{library} is for another processor than this Python; install the wheel for this one")
        ctypes.CDLL(library)
    except OSError as error:
        _die(f"this Python, with its libc, cannot load the library: {error}; build the package from source on this system")


def _environment(library: str) -> dict[str, str]:
    """Ours first, then what is preloaded already."""
    environment = dict(os.environ)
    inherited = [word for word in re.split("[ :]", environment.get("LD_PRELOAD", ""))
                 if word and not re.match(r"libhmalloc[^/]*$", os.path.basename(word))]
    folders = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder and folder != _LIBRARIES]
    if re.search("[:;]", library):
        _die(f"{library} cannot be preloaded: its path has a colon or a semicolon; move the environment")
    if " " in library:  # which divides the names in LD_PRELOAD, but not the folders in which they are searched for
        library = os.path.basename(library)
        environment["LD_LIBRARY_PATH"] = ":".join([_LIBRARIES, *folders])
    environment["LD_PRELOAD"] = ":".join([library, *inherited])
    if "t" not in sys.abiflags:  # a free-threaded Python allows its objects no other allocator than its own
        environment.setdefault("PYTHONMALLOC", "malloc")
    return environment


def main() -> NoReturn:
    """The command `hmalloc-python`, and `python -m hmalloc`."""
    arguments, library = sys.argv[1:], "libhmalloc.so"
    if arguments[:1] == ["--hardened"]:
        arguments, library = arguments[1:], "libhmalloc-hardened.so"
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        sys.exit()
    if not sys.executable:
        _die("this Python does not know its own program, which is to be started again")
    library = os.path.join(_LIBRARIES, library)
    environment = _environment(library)
    _require_usable(library)
    os.execve(sys.executable, [sys.executable, *_interpreter_options(), *arguments], environment)


if __name__ == "__main__":
    main()
