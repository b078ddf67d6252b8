#!/usr/bin/env python3
"""A machine of AArch64 under Debian's kernel, in emulation (qemu-system-aarch64): unit tests, stress, misuse, the
conformance cases that qemu-user cannot judge, and a few real programs under the preloaded library, from an initramfs.
Status 77: something is missing here."""

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "conformance"), str(HERE.parent / "misuse")]
from cases import CASES as MISUSES  # noqa: E402
from cases import LINKED  # noqa: E402
from matrix import CASES  # noqa: E402
from needs import NEEDS  # noqa: E402
from special import LIMITED  # noqa: E402

# On the emulated machine itself these say nothing, or take too long.
NOT_HERE = {
    "thread_10k": "minutes in emulation",
    "thread_10k_kept": "minutes in emulation",
    "map_count": "minutes in emulation",
    "fork_from_thread": "gives each child ten seconds of real time",
    "overcommit_charge": "the whole machine is smaller than what it charges",
    "no_thp": "about the machine's settings",
    "limit_of_group": "the machine has no control groups; the same cases run under a limit in bytes",
}
PACKAGES = ["busybox", "sqlite3", "libsqlite3-0", "libreadline8", "libtinfo6", "zlib1g", "lua5.4",
            "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libexpat1"]
LIBRARIES = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libresolv.so.2", "ld-linux-aarch64.so.1"]


def copy(source, target, strip=None):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    if strip:
        subprocess.run([strip, "--strip-debug", target], check=True)


def fill(root, options, debian):
    """The tree of the initramfs."""
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("proc", "sys", "dev", "tmp", "bin"):
        (root / folder).mkdir(parents=True)
    for folder in ("bin", "usr/bin", "lib", "usr/lib"):
        if (debian / folder).exists():
            shutil.copytree(debian / folder, root / folder, symlinks=True, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("modules", "idlelib", "test", "__pycache__", "boot"))
    for name in LIBRARIES:
        copy(options.sysroot / "lib" / name, root / "lib" / name)
    subprocess.run(["ln", "-s", "busybox", root / "bin/sh"], check=True)
    copy(HERE / "init", root / "init")
    build = options.build
    copy(options.library or build / "libhmalloc.so", root / "test/libhmalloc.so", options.strip)
    programs = ["system/missing", "stress/hm_stress", "stress/hm_fork_storm", "aarch64/where"]
    for path in programs if options.quick else [*programs, "unit/hm_unit"]:
        copy(build / "tests" / path, root / "test" / Path(path).name, options.strip)
    misuses = [c for c in MISUSES if c.program not in LINKED and c.answer("default")]
    for program in {c.program for c in misuses}:
        copy(build / "tests/misuse" / program, root / "test/misuse" / program)
    (root / "test/misuses").write_text("".join(" ".join([c.program, *c.arguments]) + "\n" for c in misuses))
    limits = " ".join(f"{name}={value}" for name, value in LIMITED.items())
    cases = [("limit", c.sub, limits) if c.program == "!limited" else (c.program, c.sub, "")
             for c in CASES if c.sub in NEEDS and not {c.name, c.sub} & NOT_HERE.keys()]
    for program in {program for program, _, _ in cases}:
        copy(build / "tests/conformance" / program, root / "test/conformance" / program)
    (root / "test/cases").write_text("".join(" ".join(case).rstrip() + "\n" for case in dict.fromkeys(cases)))


def pack(root, archive):
    names = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
    with open(archive, "wb") as out:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=root, input=names, stdout=out,
                       check=True)


def boot(kernel, archive, limit):
    """Every line that the console says, as it comes."""
    argv = ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a72", "-accel", "tcg,thread=multi", "-smp", "2",
            "-m", "2048", "-nographic", "-no-reboot", "-net", "none", "-kernel", kernel, "-initrd", archive,
            "-append", "console=ttyAMA0 quiet panic=-1 rdinit=/init"]
    machine = subprocess.Popen([str(a) for a in ["timeout", "-k", "1", str(limit), *argv]], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in machine.stdout:
        yield line.rstrip()
    machine.wait()


def judge(lines):
    passed, failed, ended = 0, [], False
    for line in lines:
        if not re.match(r"smoke: passed (unit|misuse)\.", line):
            print(line, flush=True)
        passed += line.startswith("smoke: passed")
        ended = ended or line.startswith("smoke: end")
        if line.startswith("smoke: failed"):
            failed.append(line)
    return passed, failed, ended


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="a cross build")
    parser.add_argument("--sysroot", type=Path, default=Path("/usr/aarch64-linux-gnu"))
    parser.add_argument("--strip", default="aarch64-linux-gnu-strip")
    parser.add_argument("--library", type=Path, help="another library than the build's")
    parser.add_argument("--quick", action="store_true", help="without the unit tests, which take most of the time")
    parser.add_argument("--limit", type=int, default=900, help="seconds until the machine is turned off")
    options = parser.parse_args()
    options.build = options.build.resolve()
    for tool in ("qemu-system-aarch64", "cpio"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing")
            return 77
    work = options.build / "aarch64"
    fetched = subprocess.run([HERE / "fetch.sh", work / "debian", *PACKAGES], check=False).returncode
    if fetched != 0:
        return fetched
    fill(work / "root", options, work / "debian/root")
    pack(work / "root", work / "initramfs")
    kernel = next((work / "debian/root/boot").glob("vmlinuz-*"))
    begin = time.monotonic()
    passed, failed, ended = judge(boot(kernel, work / "initramfs", options.limit))
    for sub, reason in NOT_HERE.items():
        print(f"smoke: skipped conformance.{sub}: {reason}")
    print(f"smoke: {passed} passed, {len(failed)} failed in {time.monotonic() - begin:.0f} s")
    if not ended:
        print("smoke: the machine did not come to its end")
    return 0 if ended and passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
