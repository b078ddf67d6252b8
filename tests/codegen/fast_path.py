"""What a hit costs at each entry point: instructions, calls, locked instructions, against a golden file.

Two independent ways lead to the numbers.  hm_hits runs each entry point once, instruction by instruction.  The walk
reads the disassembly: from the symbol on, jumps followed, conditional branches not taken, until the return, for the
compiler puts what is unlikely behind.  Where both are to agree and do not, the walk or the layout of the code is wrong.
For AArch64 there is the walk alone, for emulators have no single steps.

Counts may only shrink: more is a failure, less asks for --update.
"""
import argparse
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
SYMBOLS = {"operator_new": "_Znwm", "operator_delete": "_ZdlPv", "operator_delete_sized": "_ZdlPvm"}
# Limits beyond which no golden may be updated.
MOST = {"malloc": 16, "hm_malloc": 16, "operator_new": 20, "hm_shared_alloc": 18, "free": 36, "hm_free": 36, "hm_free_sized": 20,
        "operator_delete": 36, "operator_delete_sized": 36, "hm_shared_free": 36, "hm_shared_free_sized": 20,
        "hm_local_alloc": 19, "hm_local_free_sized": 22, "inline_local_alloc": 12, "inline_local_free_sized": 15}
# Compiled into hm_hits.
INLINE = {"inline_local_alloc", "inline_local_free_sized"}
MOST_AARCH64 = {"malloc": 21, "hm_malloc": 21, "operator_new": 27, "hm_shared_alloc": 23, "free": 43, "hm_free": 43,
                "hm_free_sized": 25, "operator_delete": 43, "operator_delete_sized": 43, "hm_shared_free": 43,
                "hm_shared_free_sized": 26, "hm_local_alloc": 20, "hm_local_free_sized": 24}


def disassemble(objdump, path):
    """Address -> instruction text, and symbol -> address."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", "-w", path], check=True, capture_output=True,
                          text=True).stdout
    code, symbols = {}, {}
    for line in text.splitlines():
        if match := re.match(r"([0-9a-f]+) <([^>]+)>:$", line):
            symbols.setdefault(match[2], int(match[1], 16))
        elif match := re.match(r"\s+([0-9a-f]+):\s+(.+?)\s*$", line):
            code[int(match[1], 16)] = match[2]
    return code, symbols


def walk(code, start):
    """The addresses on the way that takes no conditional branch."""
    addresses = sorted(code)
    after = dict(zip(addresses, addresses[1:]))
    path, at = [], start
    while len(path) < 400:
        path.append(at)
        name, target = code[at].split()[0], re.match(r"(?:jmp|b)\s+([0-9a-f]+)\b", code[at])
        if name in ("ret", "repz", "call", "bl", "blr", "br") or (name == "jmp" and not target):
            break
        at = int(target[1], 16) if target else after[at]
    return path


def is_call(instruction):
    return instruction.startswith("call") or instruction.split()[0] in ("bl", "blr", "br")


def is_locked(instruction):
    names = instruction.split()
    # On AArch64: exclusive pairs, compare-and-swap and the other atomic instructions, barriers.
    if re.match(r"(ld|st)a?l?xr|ldaxr|stlxr|cas|swp|ld(add|set|clr|eor)|dmb|dsb", names[0]):
        return True
    return ("lock" in names or "cmpxchg" in instruction or "mfence" in names or
            (names[0].startswith("xchg") and "(" in instruction))


def measure(hits):
    """Entry -> (object, addresses), or None where the system allows no single steps."""
    done = subprocess.run([hits], capture_output=True, text=True)
    if done.returncode == SKIPPED:
        return None
    if done.returncode != 0:
        sys.exit(f"{hits} failed with {done.returncode}")
    traces = {}
    for line in done.stdout.splitlines():
        name, path, *addresses = line.split()
        traces[name] = (path, [int(a, 16) for a in addresses])
    return traces


def count(code, addresses):
    path = [code.get(a, "call outside") for a in addresses]
    return len(path), sum(map(is_call, path)), sum(map(is_locked, path))


def collect(library, hits, objdump, most):
    """Entry -> counts, and complaints."""
    objects = {path: disassemble(objdump, path) for path in (library, hits) if path}
    traces, counts, complaints = measure(hits) if hits else None, {}, []
    if traces is None:
        print("no single steps here: the walk over the disassembly alone")
    for entry in most:
        code, symbols = objects[hits if entry in INLINE else library]
        walked = walk(code, symbols[SYMBOLS.get(entry, entry)])
        if traces is None:
            counts[entry] = count(code, walked)
            continue
        counts[entry] = count(code, traces[entry][1])
        if walked != traces[entry][1]:
            complaints.append(f"{entry}: a hit does not run straight through: {len(walked)} instructions without a "
                              f"branch taken, {counts[entry][0]} in truth")
    return counts, complaints


def read_golden(golden):
    """The compiler, and entry -> counts."""
    text = golden.read_text() if golden.exists() else ""
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    compiler = re.search(r"^# compiler: (.*)$", text, re.M)
    return compiler and compiler[1], {name: tuple(map(int, numbers)) for name, *numbers in rows}


def write_golden(golden, counts, compiler):
    lines = ["# Hits of each entry point: instructions, calls, locked instructions.  tests/codegen/fast_path.py --update",
             f"# compiler: {compiler}"]
    lines += [f"{name:24}{n[0]:4}{n[1]:4}{n[2]:4}" for name, n in counts.items()]
    golden.write_text("\n".join(lines) + "\n")


def compare(counts, golden, most):
    complaints, smaller = [], []
    for name, (instructions, calls, locked) in counts.items():
        if calls or locked:
            complaints.append(f"{name}: {calls} calls, {locked} locked instructions on a hit")
        if instructions > most[name]:
            complaints.append(f"{name}: {instructions} instructions, at most {most[name]} are allowed")
        if name not in golden:
            complaints.append(f"{name}: not in the golden file; run with --update")
        elif instructions > golden[name][0]:
            complaints.append(f"{name}: {instructions} instructions, the golden file has {golden[name][0]}")
        elif instructions < golden[name][0]:
            smaller.append(name)
    if smaller:
        print("fewer instructions than the golden file has: run with --update for", ", ".join(smaller))
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hits")
    for name in ("--library", "--objdump", "--compiler", "--processor", "--build-type"):
        parser.add_argument(name, required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    kind = {"x86_64": ("fast_path.golden", MOST), "aarch64": ("fast_path_aarch64.golden", MOST_AARCH64)}.get(options.processor)
    if kind is None or options.build_type not in ("Release", "RelWithDebInfo"):
        print("goldens are for optimised builds for x86-64 and AArch64")
        sys.exit(SKIPPED)
    file, most = pathlib.Path(__file__).with_name(kind[0]), kind[1]
    counts, complaints = collect(options.library, options.hits, options.objdump, most)
    for name, (instructions, calls, locked) in counts.items():
        print(f"{name:24}{instructions:4} instructions  {calls} calls  {locked} locked")
    if options.update:
        write_golden(file, counts, options.compiler)
    compiler, golden = read_golden(file)
    if options.compiler != compiler:
        print(f"the goldens are {compiler}'s, this is {options.compiler}: limits only")
        golden = {name: (most[name],) for name in counts}
    complaints += compare(counts, golden, most)
    for complaint in complaints:
        print("FAILED", complaint)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
