"""The machine and the software that numbers depend on, as far as the system tells."""

import os
import platform
import re
import subprocess
from pathlib import Path

from ..build_paths import SOURCE


def describe() -> dict[str, str | int]:
    """What is not known here is left out."""
    known = {
        "CPU": _first("/proc/cpuinfo", r"^model name\s*: (.*)$") or platform.machine(),
        "CPUs": len(os.sched_getaffinity(0)),
        "CPUs of the machine": os.cpu_count(),
        "threads per core": _threads_per_core(),
        "NUMA nodes": _read("/sys/devices/system/node/online"),
        "memory": _memory(),
        "virtual machine": "yes" if _first("/proc/cpuinfo", r"^flags\s*:.*\b(hypervisor)\b") else "no",
        "frequency governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "turbo off": _read("/sys/devices/system/cpu/intel_pstate/no_turbo"),
        "kernel": platform.release(),
        "distribution": _distribution(),
        "transparent huge pages": _chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        "page size": f"{os.sysconf('SC_PAGESIZE')} B",
        "overcommit": _read("/proc/sys/vm/overcommit_memory"),
        "swap": _first("/proc/meminfo", r"^SwapTotal:\s*(\d+ kB)$"),
        "address randomisation": _read("/proc/sys/kernel/randomize_va_space"),
        "cgroup CPU limit": _cgroup("cpu.max"),
        "cgroup memory limit": _cgroup("memory.max"),
        "glibc": platform.libc_ver()[1],
        "compiler": _said("c++", "--version").split("\n")[0],
        "hmalloc": _said("git", "-C", str(SOURCE), "describe", "--always", "--dirty"),
        "load before": _read("/proc/loadavg"),
    }
    return {name: value for name, value in known.items() if value}


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:  # a container may have no such file
        return platform.system()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _first(path: str, pattern: str) -> str:
    found = re.search(pattern, _read(path), re.MULTILINE)
    return found[1] if found else ""


def _chosen(path: str) -> str:
    """`always [madvise] never`: the word in brackets."""
    return _first(path, r"\[(\w+)\]")


def _memory() -> str:
    kilobytes = _first("/proc/meminfo", r"^MemTotal:\s*(\d+) kB$")
    return f"{int(kilobytes) / 2**20:.1f} GiB" if kilobytes else ""


def _threads_per_core() -> str:
    siblings = _read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    return str(len(re.findall(r"\d+", siblings.replace("-", ",")))) if siblings else ""


def _cgroup(limit: str) -> str:
    """The narrowest above us; `max` where nothing limits."""
    folder = Path("/sys/fs/cgroup") / _first("/proc/self/cgroup", r"^0::/(.*)$")
    found = [value for level in (folder, *folder.parents) if (value := _read(str(level / limit)))]
    limited = [value for value in found if not value.startswith("max")]
    return limited[0] if limited else found[0] if found else ""


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
