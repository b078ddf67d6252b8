"""The recordings that replay cells play: made before the first round, kept for later campaigns."""

import hashlib
import subprocess
from pathlib import Path

from ..build_paths import BuildPaths
from ..errors import Failure
from .catalogue import Cell
from .recordings import TRACES

_LIMIT_S = 120


def provide(built: BuildPaths, cells: list[Cell]) -> tuple[dict[str, Path], dict[str, str]]:
    """(trace -> its file, trace -> why there is none) for all that the cells play."""
    folder = built.state / "bench" / "traces"
    files, missing = {}, {}
    for name in sorted({cell.point["trace"] for cell in cells if cell.workload == "replay"}):
        try:
            files[name] = _recorded(built, folder, name)
        except Failure as failure:
            missing[name] = str(failure)
    return files, missing


def _recorded(built: BuildPaths, folder: Path, name: str) -> Path:
    words, arguments = TRACES[name]
    program = Path(words) if words.startswith("/") else built.workloads / words
    if not program.is_file():
        raise Failure(f"there is no {program}")
    # Another command is another trace: numbers of the two must not be mixed.
    digest = hashlib.sha256("\0".join([words, *arguments]).encode()).hexdigest()[:8]
    file = folder / f"{name}-{digest}.hmtrace"
    if not file.is_file():
        _record(built, [str(program), *arguments], file)
    return file


def _record(built: BuildPaths, command: list[str], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".part")
    try:
        _run_recorded(built, command, unfinished)
        unfinished.rename(file)
    finally:
        # Of an interrupted recording, and of processes that the program started.
        for left in file.parent.glob(f"{file.stem}.part*"):
            left.unlink()


def _run_recorded(built: BuildPaths, command: list[str], file: Path) -> None:
    try:
        done = subprocess.run(
            [built.natives / "hmalloc-trace", "record", "--output", file, "--", *command],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False)
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror.lower()}") from error
    except subprocess.TimeoutExpired as error:
        raise Failure(f"its recording took longer than {_LIMIT_S} s") from error
    if done.returncode != 0 or not file.is_file():
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise Failure(f"it could not be recorded: {said}")
