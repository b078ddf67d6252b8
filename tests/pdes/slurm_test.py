"""The job script under a Slurm of one machine, which is started for it: a job saves itself when its time is nearly over, asks
for its next turn, and comes to the result of a run that was never stopped."""

import json
import os
import shutil
import socket
import subprocess
import time

import programs
import pytest
from programs import CLEAN, ROOT, model

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel", "squeue")
missing = [name for name in NEEDED if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None]

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={host} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def until(condition, what: str, seconds: float):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@pytest.fixture
def slurm(tmp_path):
    """The environment of its commands."""
    for name in "state", "spool":
        (tmp_path / name).mkdir()
    host = socket.gethostname().partition(".")[0]
    configuration = tmp_path / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(host=host, ports=free_ports(2), folder=tmp_path))
    key = tmp_path / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    env = CLEAN | {"SLURM_CONF": str(configuration), "PATH": os.environ["PATH"] + ":/usr/sbin"}
    files = [f"--{what}={tmp_path}/munge.{what.partition('-')[0]}" for what in ("pid-file", "seed-file", "log-file")]
    daemons = []
    with open(tmp_path / "said", "w") as said:
        for command in (["munged", "--foreground", "--force", f"--socket={tmp_path}/munge.socket", f"--key-file={key}", *files],
                        ["slurmctld", "-D"], ["slurmd", "-D"]):
            daemons.append(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said))
            time.sleep(1)
    try:
        until(lambda: "idle" in programs.run("sinfo", "-h", "-o", "%T", env=env).stdout, "a machine is there", 60)
        yield env
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()


@pytest.mark.skipif(bool(missing), reason=f"not installed: {' '.join(missing)} (Debian: slurmctld slurmd slurm-client munge)")
@pytest.mark.skipif(os.getuid() != 0, reason="slurmd takes root")
def test_a_job_goes_on_where_it_was_in_its_next_turn(slurm, tmp_path):
    command = [model("phold"), "--lookahead", "10", "--mean", "20", "--end", "1000000", "--json"]
    alone = json.loads(programs.run(*command).stdout)
    file, output = tmp_path / "run.save", tmp_path / "output"
    job = programs.run("sbatch", "--parsable", "-n", "2", "-c", "1", "-t", "30", "-D", tmp_path, "-o", output,
                       ROOT / "pdes/mpi/slurm-job", file, *command, "--checkpoint-every", "0.2", env=slurm)
    assert job.returncode == 0, job.stderr
    number = job.stdout.strip()
    until(file.exists, "the job runs", 120)
    programs.run("scancel", "--batch", "--signal=USR1", number, env=slurm, check=True)
    until(lambda: "REQUEUE" in output.read_text(), "it asks for its next turn", 60)
    until(lambda: not programs.run("squeue", "-h", "-j", number, env=slurm).stdout.strip(), "it is done", 600)
    *_, last = (line for line in output.read_text().splitlines() if line.startswith("{"))
    together = json.loads(last)
    assert together["ranks"] == 2 and 0 < together["events_before"] < together["events"]
    for same in "digest", "events", "statistics":
        assert together[same] == alone[same], same


def test_a_job_without_a_program_is_told_how(tmp_path):
    done = programs.run(ROOT / "pdes/mpi/slurm-job", tmp_path / "run.save")
    assert done.returncode == 2 and done.stderr.startswith("usage: sbatch ") and done.stderr.count("\n") == 1
