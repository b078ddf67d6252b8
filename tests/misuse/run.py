#!/usr/bin/env python3
"""Every misuse ends with the message that its program declares in its first lines:

    // expect: MESSAGE            by the default and the checked library
    // expect default: MESSAGE    where the two say it differently
    // expect checked: MESSAGE    alone: the default library need not see it, but it must not crash
    // expect: survival           the program tries many and judges itself: it ends with 0, in silence

0xPOINTER stands for any address, the rest is a regular expression with its parentheses and dots taken literally, except
for (one|or another).
"""

import argparse
import re
import shlex
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))
from harness import (  # noqa: E402
    ABORT, EMULATOR, OK, OK_OR_ABORT, REPOSITORY, Tally, environment, execute, in_parallel, meets)

LIBRARIES = {"default": "libhmalloc.so", "checked": "libhmalloc-checked.so"}
SURVIVAL = "survival"
DECLARED = re.compile(r"^// expect(?: (default|checked))?: (.*)$", re.MULTILINE)


def pattern(message):
    choices = re.split(r"(\([^()]*\|[^()]*\))", message)
    text = "".join(part if part.startswith("(") and "|" in part else re.escape(part) for part in choices)
    return re.compile(text.replace("0xPOINTER", "0x[0-9a-f]+") + "\n")


def expectations(source):
    text = source.read_text()
    declared = {kind or "both": message for kind, message in DECLARED.findall(text)}
    if not declared:
        raise ValueError(f"{source.name} declares no message")
    for kind in LIBRARIES:
        message = declared.get(kind) or declared.get("both")
        yield kind, message, '#include "hmalloc/hmalloc' in text


def perform(test):
    source, kind, message, linked, options = test
    library = options.build / LIBRARIES[kind]
    if not library.exists():
        return source.stem, kind, "skipped", f"{library.name} is not built"
    program = options.programs / (source.stem + ("-checked" if linked and kind == "checked" else ""))
    ending = execute([program], environment(None if linked else library), timeout=200 if message == SURVIVAL else 20)
    if message == SURVIVAL:
        good = meets(OK, ending)
    else:
        good = meets(ABORT, ending, pattern(message)) if message else meets(OK_OR_ABORT, ending)
    if good:
        return source.stem, kind, "passed", ""
    return source.stem, kind, "failed", f"expected {message or 'no crash'}; {ending.describe()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="misuses by name; all without")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--programs", type=Path, help="folder of the built programs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--emulator", default="", help="the command that runs programs of another architecture")
    options = parser.parse_args()
    EMULATOR[:] = shlex.split(options.emulator)
    options.build = options.build.resolve()
    options.programs = (options.programs or options.build / "tests/misuse").resolve()
    sources = sorted(s for s in (HERE / "cases").glob("*.c") if not options.names or s.stem in options.names)
    if not sources:
        parser.error("no such misuse")
    if not (options.programs / sources[0].stem).exists():
        parser.error(f"no programs in {options.programs}: build them, or name them with --programs")
    tests = [(s, kind, message, linked, options) for s in sources for kind, message, linked in expectations(s)]
    tally = Tally()
    for name, kind, verdict, note in in_parallel(options.jobs, perform, tests):
        tally.count(verdict)
        print(f"{verdict:8}{name:32}{kind:9}{note}", flush=True)
    print(tally.closing_line())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
