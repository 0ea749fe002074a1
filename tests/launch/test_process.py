"""The process launcher: what its files are good for when a control or a replica dies at the wrong time."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.launch import records, system
from axon.adapters.launch.records import Record, Records
from axon.bootstrap.control.launching import gpus_of
from axon.domain.fleet.replica import Group, Launched, LaunchState, ReplicaSpec
from axon.errors import DependencyDown
from axon.ports.launcher import Launcher
from tests.contracts.launch_backends import ProcessMachine, process_machine
from tests.journeys.server import wait_until

ONE = Group("small").replica(0)
SPEC = ReplicaSpec(version="small@v1", label="v1")
STUBBORN = replace(SPEC, version="small@stubborn")


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[ProcessMachine]:
    async with process_machine(tmp_path) as machine:
        yield machine


def stranger_here() -> "subprocess.Popen[bytes]":
    """A process that is nobody's replica."""
    return subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)


def run_elsewhere(words: str) -> None:
    """Runs words of Python in a process of their own."""
    environ = {**os.environ, "PYTHONPATH": "src:."}
    subprocess.run([sys.executable, "-c", words], env=environ, check=True, timeout=60)


def visible(machine: ProcessMachine, each: Launched) -> str:
    """The GPUs that a replica sees."""
    environ = Path(f"/proc/{machine.process(each).pid}/environ").read_text().split("\0")
    return dict(line.split("=", 1) for line in environ if line)["CUDA_VISIBLE_DEVICES"]


async def only(launcher: Launcher) -> Launched:
    [found] = await launcher.list()
    return found


async def running(machine: ProcessMachine, launcher: Launcher, spec: ReplicaSpec = SPEC) -> Launched:
    """A replica that has made its name its own."""
    await launcher.ensure(ONE, spec, term=1)
    wait_until(lambda: "runs" in machine.log(ONE), "the replica is up")
    return await only(launcher)


async def test_a_replica_has_the_environment_that_it_is_given_and_a_log(machine: ProcessMachine) -> None:
    await running(machine, machine.connect())
    assert machine.log(ONE) == "runs small#-0 small@v1 so\n"
    assert (machine.folder / "replicas" / "small#-0.log").stat().st_mode & 0o777 == 0o600


async def test_a_replica_is_told_once_to_drain_and_killed_when_it_does_not(machine: ProcessMachine) -> None:
    launcher = machine.connect(stop_s=30.0)
    found = await running(machine, launcher, STUBBORN)
    process = machine.process(found)
    for _ in range(3):
        await launcher.stop(ONE, found.incarnation, term=1)
    wait_until(lambda: "drains" in machine.log(ONE), "it was told")
    machine.clock.advance(29.0)
    assert (await only(launcher)).state is LaunchState.STOPPING
    assert machine.log(ONE).count("drains") == 1
    machine.clock.advance(2.0)
    await launcher.list()
    wait_until(lambda: not system.is_alive(process), "it was killed")
    assert not await launcher.list()


async def test_a_start_whose_pid_was_not_written_down_is_found_by_its_name(machine: ProcessMachine) -> None:
    launcher = machine.connect()
    found = await running(machine, launcher)
    store = Records(machine.folder / "replicas")
    written = store.get(ONE)
    assert written is not None
    store.put(replace(written, state=LaunchState.STARTING, process=None, incarnation="start"))
    again = await only(machine.connect())
    assert (again.state, again.incarnation, again.restarts) == (LaunchState.RUNNING, found.incarnation, 0)


async def test_a_start_that_was_never_made_is_made_after_a_while(machine: ProcessMachine) -> None:
    launcher, store = machine.connect(), Records(machine.folder / "replicas")
    with store.locked():
        store.put(
            Record(name=str(ONE), spec=SPEC, state=LaunchState.STARTING, since=machine.clock.now(), incarnation="s")
        )
    machine.clock.advance(10.0)
    assert (await only(launcher)).state is LaunchState.STARTING
    await launcher.stop(ONE, "s", term=1)
    machine.clock.advance(10.0)
    assert (await only(launcher)).state is LaunchState.RUNNING


async def test_a_process_that_has_the_pid_of_an_earlier_one_is_neither_counted_nor_ended(
    machine: ProcessMachine,
) -> None:
    launcher, store = machine.connect(), Records(machine.folder / "replicas")
    with stranger_here() as stranger:
        of_stranger = system.process_id(stranger.pid)
        assert of_stranger is not None
        earlier = replace(of_stranger, started=of_stranger.started - 1)
        record = Record(
            name=str(ONE), spec=SPEC, state=LaunchState.STOPPING, since=0.0, incarnation=str(earlier), process=earlier
        )
        with store.locked():
            store.put(record)
        assert not await launcher.list()
        with store.locked():
            store.put(replace(record, state=LaunchState.RUNNING))
        assert (await only(launcher)).state is LaunchState.WAITING
        assert system.is_alive(of_stranger)
        assert not system.send(earlier, signal.SIGKILL)
        stranger.communicate(b"\n")
        assert stranger.returncode == 0
    assert not system.send(of_stranger, signal.SIGKILL)


async def test_a_command_that_cannot_be_started_is_tried_again_and_says_why(machine: ProcessMachine) -> None:
    machine.command = lambda name, spec: ["/nowhere/axon"]  # type: ignore[method-assign]
    launcher = machine.connect()
    await launcher.ensure(ONE, SPEC, term=1)
    found = await only(launcher)
    assert found.state is LaunchState.WAITING
    assert "/nowhere/axon" in found.problem


async def test_a_problem_has_the_last_line_that_the_replica_wrote(machine: ProcessMachine) -> None:
    words = "print('no memory', flush=True); print(); raise SystemExit(3)"
    machine.command = lambda name, spec: [sys.executable, "-S", "-c", words]  # type: ignore[method-assign]
    launcher = machine.connect()
    await launcher.ensure(ONE, SPEC, term=1)
    process = machine.process(await only(launcher))
    wait_until(lambda: not system.is_alive(process), "it has ended")
    assert (await only(launcher)).problem == "ended with exit code 3: no memory"


async def test_a_log_that_grows_too_large_is_kept_once(machine: ProcessMachine) -> None:
    launcher = machine.connect(max_log_bytes=10)
    await running(machine, launcher, STUBBORN)
    await launcher.list()
    assert machine.log(ONE) == ""
    await launcher.stop(ONE, (await only(launcher)).incarnation, term=1)
    wait_until(lambda: machine.log(ONE) == "drains\n", "it writes on in the empty file")
    kept = machine.folder / "replicas" / "small#-0.log.1"
    assert kept.read_text() == "runs small#-0 small@stubborn so\n"


async def test_replicas_with_gpus_have_one_each_and_wait_while_none_is_free(machine: ProcessMachine) -> None:
    launcher, spec = machine.connect(gpus=("0", "3")), replace(SPEC, devices=1)
    for index in range(3):
        await launcher.ensure(Group("small").replica(index), spec, term=1)
    found = await launcher.list()
    assert [each.state for each in found] == [LaunchState.RUNNING, LaunchState.RUNNING, LaunchState.WAITING]
    assert found[2].problem == "needs 1 GPUs, and 0 of 2 are free"
    assert [visible(machine, each) for each in found[:2]] == ["0", "3"]
    await launcher.stop(ONE, found[0].incarnation, term=1)
    await machine.until_gone(launcher, ONE)
    machine.clock.advance(1.0)
    last = (await launcher.list())[-1]
    assert (last.name.index, last.state, last.restarts) == (2, LaunchState.RUNNING, 0)


def test_the_gpus_of_a_machine_are_those_that_control_may_use(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert gpus_of({}, tmp_path) == ["0", "2", "10"]
    assert gpus_of({"CUDA_VISIBLE_DEVICES": "1, GPU-8f"}, tmp_path) == ["1", "GPU-8f"]
    assert gpus_of({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == []


async def test_a_record_that_cannot_be_read_is_no_list(machine: ProcessMachine) -> None:
    launcher = machine.connect()
    await running(machine, launcher)
    path = machine.folder / "replicas" / "small#-0.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    with pytest.raises(DependencyDown, match="cannot be used"):
        await launcher.list()
    path.write_bytes(whole)


async def test_a_control_that_holds_the_lock_is_waited_for_and_not_for_ever(
    machine: ProcessMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_LOCK_S", 0.05)
    with Records(machine.folder / "replicas").locked(), pytest.raises(DependencyDown, match="holds its lock"):
        await machine.connect().list()
    assert not await machine.connect().list()


async def test_a_replica_outlives_the_process_that_launched_it(machine: ProcessMachine) -> None:
    words = f"""
import asyncio
from pathlib import Path
from tests.contracts.launch_backends import ProcessMachine
from tests.launch.test_process import ONE, SPEC
asyncio.run(ProcessMachine(Path({str(machine.folder)!r})).connect().ensure(ONE, SPEC, term=1))
"""
    run_elsewhere(words)
    wait_until(lambda: "runs" in machine.log(ONE), "the replica is up")
    found = await only(machine.connect())
    assert found.state is LaunchState.RUNNING
    os.kill(machine.process(found).pid, signal.SIGKILL)
