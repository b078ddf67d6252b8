"""Puts a load on a server: when it can be talked to, and for as long as it lives."""

import os
import select
import signal
import subprocess
import tempfile
import time

import psutil

from .errors import Failure

_LISTENS_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.01


def put_load(command: str, server: int, measurer: subprocess.Popen, show_output: bool) -> float:
    """Runs a shell command while the server lives; returns how long it took."""
    _wait_until_listening(server)
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        load = subprocess.Popen(
            ["/bin/sh", "-c", command], env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
            stdout=None if show_output else subprocess.DEVNULL, stderr=None if show_output else errors)
        try:
            _wait_for_either(load, measurer)
            took = time.monotonic() - began
            if load.poll() and _survives(measurer):
                errors.seek(0)
                raise Failure(f"--load ended with exit code {load.returncode}{_last_lines(errors.read())}", 1)
        finally:
            # A client whose server is gone may try for ever; and Ctrl-C does not reach its session.
            if load.poll() is None:
                os.killpg(load.pid, signal.SIGKILL)
                load.wait()
    return took


def _wait_for_either(*processes: subprocess.Popen) -> None:
    poller, files = select.poll(), [os.pidfd_open(process.pid) for process in processes]
    for file in files:
        poller.register(file, select.POLLIN)
    poller.poll()
    for file in files:
        os.close(file)


def _survives(measurer: subprocess.Popen) -> bool:
    """A load that failed because the server broke down is not what has to be reported."""
    try:
        measurer.wait(timeout=0.3)
    except subprocess.TimeoutExpired:
        return True
    return False


def _last_lines(said: bytes) -> str:
    return "".join(f"\n  {line}" for line in said.decode(errors="replace").strip().splitlines()[-3:])


def _wait_until_listening(pid: int) -> None:
    """Returns when the process listens on a TCP port or a Unix socket, has ended, or has had ten seconds for it."""
    end = time.monotonic() + _LISTENS_WITHIN_S
    while time.monotonic() < end:
        try:
            if _listens(psutil.Process(pid)):
                return
        except psutil.AccessDenied:
            # Not ours to look into: it gets a moment, and the load command has to know for itself.
            time.sleep(1)
            return
        except psutil.NoSuchProcess:
            return
        time.sleep(_LOOK_EVERY_S)


def _listens(process: psutil.Process) -> bool:
    if process.status() == psutil.STATUS_ZOMBIE:
        raise psutil.NoSuchProcess(process.pid)
    family = [process, *process.children(recursive=True)]
    return any(
        connection.status == psutil.CONN_LISTEN or (connection.status == psutil.CONN_NONE and connection.laddr)
        for member in family for connection in member.net_connections(kind="all"))
