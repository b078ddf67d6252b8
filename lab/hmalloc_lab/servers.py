"""When a server that has just been started can be talked to."""

import time

import psutil

_AT_MOST_S = 10.0
_LOOK_EVERY_S = 0.01


def wait_until_listening(pid: int) -> None:
    """Returns when the process listens on a TCP port or a Unix socket, has ended, or has had ten seconds for it."""
    end = time.monotonic() + _AT_MOST_S
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
