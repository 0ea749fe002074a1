"""What a killed test run has started does not outlive it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.services.process import wait_for

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import subprocess, time
from tests.services.reaper import adopt
leader = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, start_new_session=True)
member = subprocess.Popen(["sleep", "600"])
adopt(leader.pid)
adopt(member.pid)
print(leader.pid, leader.stdout.readline().decode().strip(), member.pid, flush=True)
time.sleep(600)
"""


def test_processes_of_a_killed_run_are_killed_with_their_groups() -> None:
    with subprocess.Popen([sys.executable, "-c", RUN], cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pids = [int(word) for word in run.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(runs, pids))
        os.kill(run.pid, signal.SIGKILL)
    wait_for(lambda: not any(map(runs, pids)), "all of them are gone")


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
