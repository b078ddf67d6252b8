#!/usr/bin/env python3
"""Runs glibc's own tests of malloc: on glibc, which proves that they run out of its tree, then on hmalloc."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))
from builder import Builder  # noqa: E402
from harness import REPOSITORY, Tally, environment, execute  # noqa: E402
from table import DIFFERS, ENVIRONMENT, LEFT_OUT  # noqa: E402

SKIP = 77  # status of a test that cannot run here: of ours, and of glibc's
LIBRARIES = ("libhmalloc.so", "libhmalloc-checked.so", "libhmalloc-hardened.so")


def tests(source):
    names = [f.stem for f in (source / "malloc").glob("tst-*.c") if "-aux" not in f.stem and f.stem[-9:] != "-skeleton"]
    return sorted([*names, "mallocbug"])


def fetched(work):
    """The source's folder, or why there is none."""
    folder = work / "source"
    ending = subprocess.run(["sh", HERE / "fetch.sh", folder], capture_output=True, text=True, check=False)
    if ending.returncode:
        return None, (ending.stdout + ending.stderr).strip().splitlines()[-1]
    return folder / "glibc", ""


def run(program, library):
    """(verdict, why): a failure that the table has, in the same words, is one as listed."""
    env = environment(library, TIMEOUTFACTOR="10", **ENVIRONMENT.get(program.name, {}))
    with tempfile.TemporaryDirectory() as folder:
        ending = execute([program], {**env, "TMPDIR": folder}, 300, cwd=folder)
    said = ending.stderr + ending.stdout
    library = library.name if library else "glibc"
    listed = None if library == "glibc" else DIFFERS.get((program.name, library), DIFFERS.get((program.name, "")))
    if ending.status == 0 and not ending.timed_out:
        return ("failed", "passes, and is in the table as one that does not") if listed else ("passed", "")
    if listed and not ending.timed_out and listed[0].search(said):
        return "excepted", listed[1]
    words = " | ".join([line for line in said.splitlines() if line.strip()][-2:])[:240]
    return ("skipped", words) if ending.status == SKIP else ("failed", f"{ending.describe().split(':')[0]}: {words}")


def one(builder, name, libraries):
    """Rows of (library or glibc, verdict, why)."""
    if name in LEFT_OUT:
        yield "glibc", "left out", LEFT_OUT[name]
        return
    program, said = builder.program(name)
    if program is None:
        yield "glibc", "failed", said
        return
    verdict, why = run(program, None)
    yield "glibc", verdict, why
    if verdict != "passed":
        return
    for library in libraries:
        yield library.name, *run(program, library)


def write(path, version, command, rows, libraries):
    columns = ["glibc", *(library.name for library in libraries)]
    lines = [f"glibc's own tests of malloc: {version}", "", f"    {command}", "",
             "| test | " + " | ".join(columns) + " | why |", "|---" * (len(columns) + 2) + "|"]
    for name, results in rows:
        verdicts = {library: verdict for library, verdict, _ in results}
        why = "; ".join(dict.fromkeys(why for _, _, why in results if why)).replace("|", "/")
        lines.append(f"| {name} | " + " | ".join(verdicts.get(column, "") for column in columns) + f" | {why} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="tests by name; all without")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/release")
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="of the build; again for more; all without")
    parser.add_argument("--work", type=Path, help="where the source and the programs go; in the build without")
    parser.add_argument("--results", type=Path, help="write the table here")
    options = parser.parse_args()
    work = (options.work or options.build / "glibc-tests").absolute()
    source, why = (Path(os.environ["GLIBC_SOURCE"]), "") if os.environ.get("GLIBC_SOURCE") else fetched(work)
    if source is None or not (source / "malloc/tst-malloc.c").exists():
        print(f"skipped: no source of glibc: {why or source}")
        return SKIP
    libraries = [(options.build / name).absolute() for name in options.library or LIBRARIES]
    for library in libraries:
        if not library.exists():
            parser.error(f"{library} does not exist")
    builder = Builder(source, work)
    builder.support()
    tally, rows = Tally(), []
    for name in options.names or tests(source):
        rows.append((name, []))
        for library, verdict, why in one(builder, name, libraries):
            tally.count("skipped" if verdict == "left out" else verdict)
            rows[-1][1].append((library, "as listed" if verdict == "excepted" else verdict, why))
            print(f"{verdict:9}{name:31}{library:23}{why}".rstrip(), flush=True)
    print(tally.closing_line())
    if options.results:
        version = (work / "source/complete").read_text().strip() if (work / "source/complete").exists() else str(source)
        write(options.results, version, "python3 -B tests/glibc/run.py --build build/release", rows, libraries)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
