"""A copy of one source file with a fault in it, for the fuzzers' positive controls.

plant.py --root R --out FILE NAME     A fault of tests/mutation/mutants.py, or one of those below.
plant.py --root R --file NAME         The file it belongs to.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mutation"))
import mutants  # noqa: E402

# Where no mutant of the allocator would do.
OWN = [
    mutants.Mutant("overflow_of_units_ignored", "src/base/option_parser.cc",
                   "!__builtin_mul_overflow(out, unit, &out);", "(out *= unit, true);"),
    mutants.Mutant("events_end_blocks_twice", "lab/native/trace/trace.cc",
                   "    is_live_[is_live_.size() - ago] = false;\n", ""),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--file", action="store_true")
    parser.add_argument("name")
    options = parser.parse_args()
    found = [m for m in [*mutants.MUTANTS, *OWN] if m.name == options.name]
    if len(found) != 1:
        sys.exit(f"plant: {len(found)} faults are called {options.name}")
    mutant = found[0]
    if options.file:
        print(mutant.file)
        return
    path = options.root / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        sys.exit(f"plant: the text of {mutant.name} occurs {text.count(mutant.old)} times in {mutant.file}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(f'#line 1 "{path}"\n' + text.replace(mutant.old, mutant.new))


if __name__ == "__main__":
    main()
