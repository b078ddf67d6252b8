"""Puts each fault of mutants.py into a copy of the sources and asks the tests: none may survive.

mutate.py --root R --work W [--only NAME...]     Prints a line a fault, and a table at the end.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import mutants

COPIED = ("src", "include", "pdes", "lab", "tests", "hmalloc")
LEFT_OUT = ("build", ".git", *COPIED)
JOBS = str(os.cpu_count() or 1)
# Killer -> build kind, targets, command in the build folder.
STRESS = ["tests/stress/hm_stress", "--seed", "11", "--seconds"]
CTEST = ["ctest", "-j", JOBS, "--no-tests=error", "--stop-on-failure", "--output-on-failure", "-R"]
KILLERS = {
    mutants.UNIT: ("release", ["hm_unit"], [*CTEST, r"^unit\.", "-LE", "slow"]),
    mutants.CHECKED: ("release", ["hm_unit_checked"], [*CTEST, r"^unit_checked\."]),
    mutants.HARDENED: ("release", ["hm_unit_hardened"], [*CTEST, r"^unit_hardened\."]),
    mutants.TAGS: ("aarch64", ["hm_unit_tags"], [*CTEST, r"^unit_tags\."]),
    mutants.STRESS: ("release", ["hm_stress"], [*STRESS, "4"]),
    mutants.CODEGEN: ("release", ["hmalloc", "hm_hits"], [*CTEST, r"^codegen\."]),
    mutants.MISUSE: ("release", ["hmalloc", "hmalloc-checked", "misuse_misuse", "misuse_own_api", "misuse_own_api-checked"],
                     [*CTEST, r"^misuse$"]),
    mutants.PDES: ("release", ["pdes_library"], [*CTEST, r"^pdes\.library$"]),
    mutants.ENGINE: ("release", ["pdes_timer", "pdes_end_after", "pdes_report", "pdes_critical_path", "pdes_pace",
                               "pdes_vacancies", "pdes_delays", "pdes_library", "pdes_balance",
                               "pdes_balance_ranks", "pdes_wheel"],
                     [*CTEST,
                      r"^pdes\.(balance|balance_ranks|wheel|timer|end_after|report|critical_path|pace|vacancies|delays|library)$"]),
    mutants.TSAN_UNIT: ("tsan", ["hm_unit"], [*CTEST, r"^unit\.(BlockState|Lock|Superblock|Guarded)"]),
    mutants.TSAN_STRESS: ("tsan", ["hm_stress"], [*STRESS, "20"]),
}
# Of the engine's rooms each has a test of its own, by whose name it goes: the targets that this needs.
OF_ONE_TEST = {
    mutants.CHECKPOINT: ["pdes_checkpoint"],
    mutants.METIS: ["pdes_metis"],
    mutants.GATHERING: ["pdes_gathering"],
    mutants.RANDOM: ["pdes_random"],
    mutants.BALANCE_MEMORY: ["pdes_balance_memory"],
    mutants.APP: ["pdes_app"],
    mutants.APP_PROGRAM: ["pdes_app_program"],
    mutants.MPI: ["pdes_mpi_ranks", "pdes/all"],
    mutants.FOREIGN: ["pdes_foreign"],
    mutants.PYTHON: ["pdes/all"],
    mutants.OBSERVING: ["hmalloc-pdes"],
    mutants.OUTSIDE: ["hmalloc-pdes"],
    mutants.VACANCIES: ["pdes/all"],
    mutants.SWEEPS: ["hmalloc-pdes"],
    mutants.PAGE: ["hmalloc"],
    mutants.LIVE: ["hmalloc"],
    mutants.LAUNCHER: ["hmalloc", "hmalloc-measure", "hmalloc-pipeline", "pdes/all"],
}
KILLERS |= {name: ("release", targets, [*CTEST, f"^{re.escape(name)}$"]) for name, targets in OF_ONE_TEST.items()}
OPTIONS = {"release": ["-DCMAKE_BUILD_TYPE=Release"],
           "aarch64": ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake"],
           "tsan": ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DHM_SANITIZE=thread"]}
MOST_SECONDS = 300
OUT_OF_TIME = "***Timeout"  # ctest's word


class Copy:
    """A source tree of its own for what is changed, links to the rest; and build folders in it, where the launcher and tests
    of Python look for them."""

    def __init__(self, root, work):
        self.root, self.tree = root, work / "tree"
        (self.tree / "build").mkdir(parents=True, exist_ok=True)
        for entry in root.iterdir():
            if entry.name not in LEFT_OUT:
                self.link(entry.name, entry)
        for name in COPIED:
            self.refresh(name)
        self.link("build/venv", root / "build/venv")

    def folder(self, kind):
        return self.tree / "build" / kind

    def link(self, name, to):
        if not os.path.lexists(self.tree / name):
            (self.tree / name).symlink_to(to)

    def refresh(self, name):
        """Copies what differs, so that an unchanged file keeps its date and is not compiled again."""
        kept = set()
        for source in (self.root / name, *(self.root / name).rglob("*")):
            if source.is_file():
                target = self.tree / source.relative_to(self.root)
                kept.add(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists() or target.read_bytes() != source.read_bytes():
                    shutil.copy(source, target)
        for target in (self.tree / name).rglob("*"):
            if target.is_file() and target not in kept:
                target.unlink()

    def build(self, kind, targets):
        """None, or what the compiler said."""
        folder = self.folder(kind)
        if not (folder / "build.ninja").exists():
            launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []  # what was there before
            run(["cmake", "-S", str(self.tree), "-B", str(folder), "-G", "Ninja", *OPTIONS[kind], *launcher], self.tree)
        code, text = run(["ninja", "-C", str(folder), "-j", JOBS, *targets], self.tree, most=1800)
        return None if code == 0 else text[-2000:]


def run(command, folder, most=MOST_SECONDS):
    """Exit status and output; a hang counts as a failure."""
    variables = os.environ | {"PYTEST_ADDOPTS": "-x", "GTEST_FAIL_FAST": "1"}  # the first failure is enough
    process = subprocess.Popen(command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        text, _ = process.communicate(timeout=most)
        return process.returncode, text
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return 124, f"{OUT_OF_TIME}: no end after {most} s"


def noticed(copy, killers):
    """(name of the killer, what it said), or (None, ...) if none noticed; ("", ...) if it does not compile."""
    for name in killers:
        kind, targets, command = KILLERS[name]
        if failure := copy.build(kind, targets):
            return "", failure
        folder = copy.folder(kind)
        command = [str(folder / command[0]), *command[1:]] if "/" in command[0] else command
        code, text = run(command, folder)
        if code != 0:
            return name, text
    return None, ""


def reason(text):
    """The line that says most."""
    for word in ("SUMMARY:", "stress:", "***", "FAILED", "Failure"):
        for line in text.splitlines():
            if word in line:
                return line.strip()[:90]
    return text.strip().splitlines()[-1][:90] if text.strip() else ""


def try_mutant(copy, mutant):
    path = copy.tree / mutant.file
    original = path.read_text()
    if original.count(mutant.old) != 1:
        return "STALE", f"its text occurs {original.count(mutant.old)} times in {mutant.file}"
    try:
        path.write_text(original.replace(mutant.old, mutant.new))
        killer, text = noticed(copy, mutant.killers)
    finally:
        path.write_text(original)
    if killer is None:
        return "SURVIVED", "asked: " + ", ".join(mutant.killers)
    if not killer:
        return "BROKEN", reason(text)
    # A fault may well make a program hang; but so does a busy machine, and whoever reads the table should know.
    return "out of time" if OUT_OF_TIME in text else "killed", f"{killer}: {reason(text)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=None)
    options = parser.parse_args()
    copy = Copy(options.root.resolve(), options.work.resolve())
    chosen = [m for m in mutants.MUTANTS if options.only is None or m.name in options.only]
    if shutil.which("aarch64-linux-gnu-g++") is None or shutil.which("qemu-aarch64") is None:
        chosen = [m for m in chosen if m.killers != (mutants.TAGS,)]
    asked = [k for k in KILLERS if any(k in m.killers for m in chosen)]
    print(f"the sources as they are: {', '.join(asked)}", flush=True)
    killer, text = noticed(copy, asked)
    if killer is not None:
        sys.exit(f"the tests fail without any fault ({killer or 'compiler'}):\n{text[-3000:]}")
    count = {"killed": 0, "out of time": 0}
    for number, mutant in enumerate(chosen, 1):
        start = time.monotonic()
        verdict, why = try_mutant(copy, mutant)
        count[verdict] = count.get(verdict, 0) + 1
        print(f"{number:3}/{len(chosen)}  {mutant.name:32} {verdict:11}{time.monotonic() - start:5.0f} s  {why}", flush=True)
    seen = count["killed"] + count["out of time"]
    print(f"{seen} of {len(chosen)} faults noticed, {count['out of time']} of them by a test's limit of time")
    sys.exit(0 if seen == len(chosen) else 1)


if __name__ == "__main__":
    main()
