"""Asks the loader who would serve malloc, without running the program: what `ldd -r` does, with the bindings shown."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

_BINDING = re.compile(r"binding file (?P<user>.+) \[0\] to (?P<provider>.+) \[0\]: normal symbol `malloc'")
_LOADER_DRY = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes", "LD_DEBUG": "bindings"}


def malloc_provider(binary: Path, preload: str, defines_malloc: bool) -> Path | None:
    """The file whose malloc the program and its libraries are bound to; None if nobody asks for malloc.

    Only for binaries whose loader is glibc's: another one would ignore the request and run the program.  By an absolute
    path, lest a namesake in PATH, of whose loader nothing is known, be run instead."""
    if not binary.is_absolute():
        raise ValueError(f"{binary}: not an absolute path")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    try:
        trace = subprocess.run(
            [binary], env=environment | _LOADER_DRY | {"LD_PRELOAD": preload}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    # A library's own calls may be bound to itself: what counts is where the others go.  A program that is not
    # position-independent and takes malloc's address lends its own stub to the libraries: that is not a malloc.
    hollow = None if defines_malloc else str(binary)
    providers = Counter(
        match["provider"] for match in _BINDING.finditer(trace)
        if match["provider"] not in (match["user"], hollow))
    return Path(providers.most_common(1)[0][0]) if providers else None
