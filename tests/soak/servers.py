"""Servers under load: a database with eight clients, and redis-server with I/O threads."""

import glob
import re
import subprocess
import sys
import time
from pathlib import Path

from session import TroubleError, hand_to, unprivileged, until

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
from redis import ask, free_port  # noqa: E402

CRASHED = re.compile(r"terminated by signal|PANIC|was terminated|crash|hmalloc: ")
# After any number of transactions of pgbench these are the same, or one was lost or made twice.
BALANCE = """select (select sum(abalance) from pgbench_accounts) = (select coalesce(sum(delta), 0) from pgbench_history)
  and (select sum(tbalance) from pgbench_tellers) = (select coalesce(sum(delta), 0) from pgbench_history)
  and (select sum(bbalance) from pgbench_branches) = (select coalesce(sum(delta), 0) from pgbench_history)"""
# Sorts, hashes and strings in the server's own memory.
REPORT = """select count(*), sum(length(t)) from (select string_agg(md5(aid::text), ',' order by md5(aid::text)) as t
  from pgbench_accounts where aid <= 50000 group by aid % 100) as x"""


def require_no_crash(log):
    if found := CRASHED.search(log.read_text()):
        raise TroubleError(f"the server's log has {found[0]!r}")


def postgresql_folder():
    return next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)), None)


def postgresql_missing():
    folder = postgresql_folder()
    return "" if folder and Path(folder, "pgbench").exists() else "not installed: postgresql"


def postgresql(session):
    """Every client's session is a process that the server forks; with -C every transaction's."""
    bin_folder, user, folder = Path(postgresql_folder()), unprivileged(), session.folder
    hand_to(user, folder)
    data = folder / "data"
    made = subprocess.run([bin_folder / "initdb", "-D", data, "-A", "trust", "-U", "soak", "--no-sync"], cwd=folder,
                          env=session.environment(), capture_output=True, text=True, user=user, check=False)
    if made.returncode:
        raise TroubleError(f"initdb: exit {made.returncode}: {made.stderr[-200:]}")
    to = ("-h", str(folder), "-U", "soak")

    def query(text):
        return session.run(bin_folder / "psql", *to, "-d", "postgres", "-Atc", text).strip()

    def load():
        for more in ((), ("-C",), ("-S",)):
            seconds = max(5, int(session.seconds / 4))
            said = session.run(bin_folder / "pgbench", *to, "-n", "-c", "8", "-j", "2", "-T", str(seconds), *more,
                               "postgres", timeout=seconds + 120)
            if "number of failed transactions: 0 " not in said:
                raise TroubleError(f"pgbench: {said[-300:]}")
        query("vacuum full analyze")
        return f"balanced: {query(BALANCE)}; report: {query(REPORT)}"

    with session.server(bin_folder / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off",
                        "-c", "max_parallel_workers_per_gather=2", user=user) as (server, log):
        until(lambda: "ready to accept" in log.read_text() or server.poll() is not None, "postgres is up")
        session.run(bin_folder / "pgbench", *to, "-q", "-i", "-s", "5", "postgres")
        said = session.repeat(load)
        server.send_signal(2)  # fast shutdown
        server.wait(60)
    require_no_crash(log)
    return said


def redis(session):
    """Forks for its snapshots while clients write."""
    port = free_port()
    fill = ("for i = 1, 20000 do redis.call('set', 'k' .. i, string.rep('x', i % 700)) end "
            "local n = 0 for i = 1, 20000 do n = n + redis.call('strlen', 'k' .. i) end return n")

    def load():
        saves = ask(port, "lastsave")
        ask(port, "bgrewriteaof")
        session.run("redis-benchmark", "-h", "127.0.0.1", "-p", port, "-n", "40000", "-c", "40", "-P", "8", "-q",
                    "-r", "10000", "-d", "500", "-t", "set,get,lpush,lpop,hset,sadd,zadd,mset")
        until(lambda: "aof_rewrite_in_progress:0" in ask(port, "info", "persistence"), "the rewrite ends")
        time.sleep(1.1)  # lastsave counts seconds
        ask(port, "bgsave")
        until(lambda: ask(port, "lastsave") != saves, "the snapshot is written")
        kept = ask(port, "eval", fill, "0")
        ask(port, "flushall")
        return kept

    with session.server("redis-server", "--bind", "127.0.0.1", "--port", port, "--appendonly", "yes", "--appendfsync",
                        "no", "--io-threads", "4", "--io-threads-do-reads", "yes", "--dir", session.folder) as (_, log):
        until(lambda: ask(port, "ping") == "PONG", "redis-server answers")
        said = session.repeat(load)
        ask(port, "shutdown", "nosave")
    require_no_crash(log)
    return said


def redis_pipelined(session):
    """1.4 million commands a round: 64 at a time from each client, so that the server does little but serve them."""
    port = free_port()

    def load():
        for more in (("set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop", "16"), ("set,get,lpush,lpop", "900")):
            session.run("redis-benchmark", "-h", "127.0.0.1", "-p", port, "-n", "100000", "-c", "20", "-P", "64", "-q",
                        "-r", "50000", "-t", more[0], "-d", more[1])
        ask(port, "flushall")
        return ask(port, "dbsize")

    with session.server("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir",
                        session.folder) as (_, log):
        until(lambda: ask(port, "ping") == "PONG", "redis-server answers")
        said = session.repeat(load)
        ask(port, "shutdown", "nosave")
    require_no_crash(log)
    return said
