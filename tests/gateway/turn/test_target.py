"""Which version answers a turn that names one, and what of it is compared while a rollout runs."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from axon.domain.pin import Pin
from axon.domain.registry.deployment import Member, MemberState
from axon.domain.registry.steps import with_state
from axon.errors import Conflict
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.target import Target, target_of
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_presence
from tests.domain.registry.builders import deployment, snapshot
from tests.gateway.offers.builders import FakeView, make_offers, make_prompts, said
from tests.sessions.world import Kept, open_kept

V1, V2 = "small@v1", "small@v2"


class Desk:
    """A gateway with one deployment, whose second version is in a state that a test sets."""

    def __init__(self, kept: Kept) -> None:
        self._kept, self._view = kept, FakeView(snapshot(deployment()))
        self._offers = make_offers(FakeClock(), view=self._view)

    def put(self, state: MemberState) -> None:
        self._view.snapshot = snapshot(with_state(deployment(), V2, state, now=1.0))

    async def ask(self, model: str, session: str = "", *, awaits_more: bool = False) -> tuple[Target, Entry]:
        wanted = self._offers.find(model, lambda name: True)
        gateway = SimpleNamespace(sessions=self._kept.sessions)
        headers = [(b"x-axon-session", session.encode())] if session else []
        identity = SimpleNamespace(tenant="acme")
        app = SimpleNamespace(state=SimpleNamespace(gateway=gateway))
        request = Request({"type": "http", "headers": headers, "axon.identity": identity, "app": app})
        entry = Entry(Ask(prefix="cmpl-", tenant="acme", deployment="small"), "cmpl-1", 1.0)
        entry.ask.meters.awaits_more = awaits_more
        found = await target_of(request, entry, wanted)
        await self._kept.sessions.pins.confirm(found.key, found.pin)
        return found, entry


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_kept(tmp_path) as kept:
        yield Desk(kept)


@pytest.mark.parametrize(
    "state", [MemberState.REGISTERED, MemberState.DRAINING, MemberState.FAILED, MemberState.CLOSED]
)
async def test_no_session_begins_on_a_version_that_takes_none_though_it_is_asked_for(
    desk: Desk, state: MemberState
) -> None:
    assert (await desk.ask("small@v2"))[0].served.version == V2
    desk.put(state)
    for session in ("", "mine"):
        with pytest.raises(Conflict, match=f"No session begins on small@v2, which is {state}") as refusal:
            await desk.ask("small@v2", session)
        assert (refusal.value.code, refusal.value.param) == ("version_not_ready", "model")
    assert (await desk.ask("small", "mine"))[0].served.version == V1, "the refusal has pinned nothing"


async def test_a_session_of_a_draining_version_goes_on_by_its_name_and_one_of_a_failed_version_does_not(
    desk: Desk,
) -> None:
    await desk.ask("small@v2", "mine")
    desk.put(MemberState.DRAINING)
    assert (await desk.ask("small@v2", "mine"))[0].served.version == V2
    desk.put(MemberState.FAILED)
    with pytest.raises(Conflict, match="which is failed"):
        await desk.ask("small@v2", "mine")
    assert (await desk.ask("small", "mine"))[0].moved is not None


async def test_the_first_version_of_a_deployment_is_asked_for_before_it_has_a_worker(desk: Desk) -> None:
    only = Member(version=V1, state=MemberState.REGISTERED)
    desk._view.snapshot = snapshot(replace(deployment(), members=(only,)))
    assert (await desk.ask("small@v1"))[0].served.version == V1


async def test_a_turn_that_names_its_version_and_a_later_one_are_known_as_such(desk: Desk) -> None:
    marks = []
    for model, session in (("small", "a"), ("small", "a"), ("small", ""), ("small@v2", ""), ("small@v2", "b")):
        _, entry = await desk.ask(model, session)
        marks.append((entry.is_drawn, entry.is_first))
    assert marks == [(True, True), (True, False), (True, True), (False, True), (False, True)]


async def test_a_turn_that_was_admitted_because_more_workers_start_has_time_for_that(desk: Desk) -> None:
    desk._offers.find("small", lambda name: True).offer.fleet.learn([said("w1", V1)])
    assert (await desk.ask("small"))[0].patience_s == 0.0
    assert (await desk.ask("small", awaits_more=True))[0].patience_s == deployment().cold_patience_s > 0


def test_a_turn_has_time_for_a_start_only_if_its_version_has_no_worker() -> None:
    patient = replace(deployment(), cold_patience_s=45.0)
    served = make_presence("w1").deployment
    warm = Target(deployment=patient, served=served, prompts=make_prompts(), pin=Pin(0, "small@v1"))
    assert warm.patience_s == 0.0
    assert replace(warm, awaits_worker=True).patience_s == 45.0
