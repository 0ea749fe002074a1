"""The launcher's contract: levels and not events, fenced by terms, and replicas that outlive their control."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.domain.fleet.backoff import MOST_S, STEADY_S, delay_s, failures_after
from axon.domain.fleet.replica import Group, Launched, LaunchState, ReplicaName, ReplicaSpec
from axon.errors import StaleTerm
from axon.ports.launcher import Launcher
from tests.contracts.launch_backends import EVERY, LAUNCHERS, LauncherBackend

GROUP = Group("small", "b", "gold")
ONE, TWO = GROUP.replica(0), GROUP.replica(1)
SPEC = ReplicaSpec(version="small@v1", label="v1")


every = pytest.mark.parametrize("machine", list(EVERY), indirect=True)


@pytest.fixture(params=list(LAUNCHERS))
async def machine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LauncherBackend]:
    async with EVERY[request.param](tmp_path) as machine:
        yield machine


@pytest.fixture
def launcher(machine: LauncherBackend) -> Launcher:
    return machine.connect()


async def only(launcher: Launcher, name: ReplicaName = ONE) -> Launched:
    [found] = [each for each in await launcher.list() if each.name == name]
    return found


@every
async def test_a_replica_that_is_ensured_runs_with_its_spec(launcher: Launcher) -> None:
    await launcher.ensure(ONE, SPEC, term=1)
    found = await only(launcher)
    assert (found.name, found.spec, found.restarts, found.problem) == (ONE, SPEC, 0, "")
    assert found.state in (LaunchState.STARTING, LaunchState.RUNNING)
    assert found.incarnation


@every
async def test_an_order_given_twice_changes_nothing(launcher: Launcher) -> None:
    await launcher.ensure(ONE, SPEC, term=1)
    first = await only(launcher)
    await launcher.ensure(ONE, SPEC, term=1)
    await launcher.ensure(ONE, replace(SPEC, version="small@v2"), term=2)
    assert await only(launcher) == first


async def test_a_stopped_replica_drains_and_is_gone(machine: LauncherBackend, launcher: Launcher) -> None:
    await launcher.ensure(ONE, SPEC, term=1)
    await launcher.ensure(TWO, SPEC, term=1)
    incarnation = (await only(launcher)).incarnation
    for _ in range(2):
        await launcher.stop(ONE, incarnation, term=1)
    await machine.until_gone(launcher, ONE)
    assert [each.name for each in await launcher.list()] == [TWO]
    await launcher.stop(ONE, incarnation, term=1)


@every
async def test_another_run_of_the_name_is_not_stopped(launcher: Launcher) -> None:
    await launcher.ensure(ONE, SPEC, term=1)
    await launcher.stop(ONE, "of another life", term=1)
    assert (await only(launcher)).state is LaunchState.RUNNING


@every
async def test_a_name_that_is_free_again_has_another_incarnation(machine: LauncherBackend, launcher: Launcher) -> None:
    await launcher.ensure(ONE, SPEC, term=1)
    first = (await only(launcher)).incarnation
    await launcher.stop(ONE, first, term=1)
    await machine.until_gone(launcher, ONE)
    await launcher.ensure(ONE, SPEC, term=1)
    assert (await only(launcher)).incarnation != first


@every
async def test_orders_of_a_leader_that_was_replaced_change_nothing(
    machine: LauncherBackend, launcher: Launcher
) -> None:
    old, new = launcher, machine.connect()
    await old.ensure(ONE, SPEC, term=1)
    await new.ensure(ONE, SPEC, term=2)
    incarnation = (await only(new)).incarnation
    with pytest.raises(StaleTerm):
        await old.stop(ONE, incarnation, term=1)
    with pytest.raises(StaleTerm):
        await old.ensure(TWO, SPEC, term=1)
    assert [(each.name, each.state) for each in await new.list()] == [(ONE, LaunchState.RUNNING)]
    await old.ensure(TWO, SPEC, term=2)


@every
async def test_a_new_control_finds_what_runs_and_stops_it(machine: LauncherBackend, launcher: Launcher) -> None:
    await launcher.ensure(ONE, SPEC, term=1)
    first = await only(launcher)
    another = machine.connect()
    assert await only(another) == first
    await another.ensure(ONE, SPEC, term=2)
    assert await only(another) == first
    await another.stop(ONE, first.incarnation, term=2)
    await machine.until_gone(another, ONE)


async def test_a_replica_that_ends_by_itself_is_started_again_after_a_delay_that_grows(
    machine: LauncherBackend, launcher: Launcher
) -> None:
    await launcher.ensure(ONE, SPEC, term=1)
    for restarts in range(3):
        found = await only(launcher)
        assert (found.state, found.restarts) == (LaunchState.RUNNING, restarts)
        await machine.crash(found)
        waiting = await only(launcher)
        assert waiting.state is LaunchState.WAITING
        assert "signal 9" in waiting.problem
        machine.clock.advance(delay_s(restarts) - 0.1)
        assert (await only(launcher)).state is LaunchState.WAITING
        machine.clock.advance(0.2)
        await launcher.list()


async def test_a_replica_that_waits_is_stopped_at_once(machine: LauncherBackend, launcher: Launcher) -> None:
    await launcher.ensure(ONE, SPEC, term=1)
    await machine.crash(await only(launcher))
    await launcher.stop(ONE, (await only(launcher)).incarnation, term=1)
    assert not await launcher.list()
    machine.clock.advance(MOST_S)
    assert not await launcher.list()


def test_the_delay_doubles_up_to_a_minute_and_a_long_run_resets_it() -> None:
    assert [delay_s(failures) for failures in (0, 1, 2, 5, 6, 500)] == [1.0, 2.0, 4.0, 32.0, 60.0, 60.0]
    assert failures_after(7, STEADY_S - 1) == 7
    assert failures_after(7, STEADY_S) == 0
