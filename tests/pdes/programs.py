"""Programs of this build, run in an environment that sets no option of hmalloc."""

import ctypes
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HMALLOC_BUILD", ROOT / "build" / "release"))
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))} | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def run(*command: str | Path, **more) -> subprocess.CompletedProcess:
    return subprocess.run(command, **{"env": CLEAN, "capture_output": True, "text": True, "timeout": 300} | more)


def has_metis() -> bool:
    try:
        return ctypes.CDLL("libmetis.so.5") is not None
    except OSError:
        return False


def model(name: str) -> Path:
    return BUILD / "pdes" / f"hmalloc-pdes-{name}"
