"""redis-server with I/O threads under redis-benchmark: Debian links it with jemalloc, a preload wins all the same."""

import re
import socket
import subprocess
import time
from pathlib import Path
from shutil import which

from harness import environment, execute

REQUESTS = "5000"


def missing():
    absent = [name for name in ("redis-server", "redis-benchmark", "redis-cli") if which(name) is None]
    return f"not installed: {' '.join(absent)} (redis-server redis-tools)" if absent else ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def ask(port, *command):
    return execute(["redis-cli", "-h", "127.0.0.1", "-p", port, *command], environment(), 120).stdout.strip()


def wait_until_up(port):
    for _ in range(2400):
        if ask(port, "ping") == "PONG":
            return
        time.sleep(0.05)
    raise RuntimeError("redis-server does not answer")


def load(port):
    """Numbers that depend on chance stay out; what the server stored does not."""
    benchmark = ["redis-benchmark", "-h", "127.0.0.1", "-p", port, "-n", REQUESTS, "-P", "8", "-c", "40", "-q"]
    ending = execute([*benchmark, "-r", "10000", "-d", "200", "-t", "set,get,lpush,lpop,hset,sadd,zadd"],
                     environment(), 600)
    ran = sorted(set(re.findall(r"^([A-Z]+): [\d.]+ requests", ending.stdout.replace("\r", "\n"), re.MULTILINE)))
    fill = ("for i = 1, 20000 do redis.call('set', 'k' .. i, string.rep('x', i % 700)) end "
            "local n = 0 for i = 1, 20000 do n = n + redis.call('strlen', 'k' .. i) end return n")
    return [f"benchmark exit {ending.status}", *ran, *(ask(port, *command) for command in
                                                       (["flushall"], ["eval", fill, "0"], ["dbsize"]))]


def run(library, folder):
    """(comparable lines, the complaint that the server did not use the library or nothing)"""
    port = free_port()
    argv = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no",
            "--io-threads", "4", "--io-threads-do-reads", "yes", "--dir", str(folder)]
    env = library.told_to_show(folder) if library else environment()
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(argv, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            wait_until_up(port)
            lines = load(port)
            maps = Path(f"/proc/{server.pid}/maps").read_text()
            ask(port, "shutdown", "nosave")
            lines.append(f"server exit {server.wait(300)}")
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
    if library is None:
        return lines, ""
    if str(library.path.resolve()) not in maps:
        return lines, f"{library.path.name} is not in the server's address space"
    return lines, library.not_in_use(folder, (folder / "log").read_text())
