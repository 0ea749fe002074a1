"""The admin API of the fleet: the report of control's leader, with its age."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.domain.fleet.reconcile import GroupState
from axon.domain.fleet.replica import LaunchState
from axon.domain.fleet.status import Decision, FleetStatus, ReplicaState, decode, encode, replica_status
from axon.domain.tenants.key import Scope
from tests.domain.fleet.builders import ONE, TWO, launched
from tests.gateway.admin.office import Office, ok, opened_office, refused

URL = "/v1/admin/fleet"


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened_office(tmp_path) as office:
        yield office


def report(at: float) -> FleetStatus:
    groups = (
        GroupState(group=ONE, wanted=2, reason="3 jobs wait", starting=1, ready=1),
        GroupState(group=TWO, wanted=1, reason="it is rolled out", ready=1, draining=1),
    )
    crashed = replace(launched(ONE.replica(1), LaunchState.WAITING), restarts=2, problem="no memory", zone="z1")
    return FleetStatus(
        at=at,
        leader="control-1",
        term=3,
        launcher="process",
        groups=groups,
        replicas=(replica_status(crashed, {}),),
        num_replicas=1,
        decisions=(Decision(at=at, action="ensure", replica="small#-1", reason="2 wanted"),),
    )


async def test_the_fleet_is_shown_as_its_leader_reported_it_with_the_reports_age(office: Office) -> None:
    await office.fleet.put(report(office.clock.now() - 2.0))
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        shown = await ok(admin.get(URL))
    assert (shown["object"], shown["age_s"], shown["leader"], shown["term"]) == ("fleet", 2.0, "control-1", 3)
    [small] = shown["deployments"]
    assert {name: small[name] for name in ("id", "wanted", "starting", "ready", "draining")} == {
        "id": "small",
        "wanted": 3,
        "starting": 1,
        "ready": 2,
        "draining": 1,
    }
    assert [(each["id"], each["reason"]) for each in small["groups"]] == [
        ("small#", "3 jobs wait"),
        ("small~b#", "it is rolled out"),
    ]
    [replica] = shown["replicas"]
    assert (replica["id"], replica["state"], replica["restarts"]) == ("small#-1", "waiting", 2)
    assert (replica["problem"], replica["zone"], replica["version"]) == ("no memory", "z1", "small@v1")
    assert shown["decisions"][0]["reason"] == "2 wanted"


async def test_a_fleet_that_nobody_reports_on_is_not_found_with_a_word_of_why(office: Office) -> None:
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        await refused(admin.get(URL), 404, "fleet_not_run")
        assert "control.launcher" in (await admin.get(URL)).json()["error"]["message"]
        await office.fleet.put(report(office.clock.now()))
        office.clock.advance(61.0)
        await refused(admin.get(URL), 404, "fleet_not_run")


def test_a_report_is_read_as_it_was_sent_and_none_is_made_of_another_thing() -> None:
    assert decode(encode(report(5.0))) == report(5.0)
    assert decode(b"\xc1 nonsense") is None


@pytest.mark.parametrize(
    ("state", "drains", "shown"),
    [
        (LaunchState.STARTING, None, ReplicaState.STARTING),
        (LaunchState.RUNNING, None, ReplicaState.STARTING),
        (LaunchState.RUNNING, False, ReplicaState.READY),
        (LaunchState.RUNNING, True, ReplicaState.DRAINING),
        (LaunchState.STOPPING, False, ReplicaState.DRAINING),
        (LaunchState.LOST, False, ReplicaState.LOST),
    ],
)
def test_a_replicas_state_is_its_launchers_and_its_own_word(
    state: LaunchState, drains: bool | None, shown: ReplicaState
) -> None:
    announced = {} if drains is None else {"small#-0": drains}
    assert replica_status(launched(ONE.replica(0), state), announced).state is shown
