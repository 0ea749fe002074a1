"""Which version answers a turn that names one, and what of it is compared while a rollout runs."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from axon.domain.moved import Moved
from axon.domain.registry.adapter import Adapter, AdapterFiles
from axon.domain.registry.deployment import Alias, Deployment, Member, MemberState
from axon.domain.registry.rollout import bucket_of
from axon.domain.registry.steps import with_state
from axon.domain.session.pin import Pin, pin_key
from axon.domain.turn import opened
from axon.errors import Conflict, NotFound, Unavailable
from axon.gateway.offers.fallbacks import offer_at, places
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.target import Target, target_of
from axon.runtime.clock import FakeClock, SystemClock
from tests.contracts.builders import make_job, make_presence
from tests.domain.registry.builders import deployment, rollout, snapshot, version
from tests.gateway.offers.builders import FakeView, make_offers, make_prompts, said
from tests.sessions.world import Kept, open_kept

V1, V2 = "small@v1", "small@v2"
READY = MemberState.READY


class Desk:
    """A gateway with one deployment, whose second version is in a state that a test sets."""

    def __init__(self, kept: Kept) -> None:
        self._kept, self._view = kept, FakeView(snapshot(deployment()))
        self._clock = FakeClock()
        self._offers = make_offers(self._clock, view=self._view)
        self._num_turns = 0

    def put(self, state: MemberState) -> None:
        self._view.snapshot = snapshot(with_state(deployment(), V2, state, now=1.0))

    async def ask(self, model: str, session: str = "", *, awaits_more: bool = False) -> tuple[Target, Entry]:
        wanted = self._offers.find(model, lambda name: True, tenant="acme")
        gateway = SimpleNamespace(sessions=self._kept.sessions)
        headers = [(b"x-axon-session", session.encode())] if session else []
        identity = SimpleNamespace(tenant="acme")
        app = SimpleNamespace(state=SimpleNamespace(gateway=gateway))
        request = Request({"type": "http", "headers": headers, "axon.identity": identity, "app": app})
        entry = Entry(Ask(prefix="cmpl-", tenant="acme", deployment=wanted.offer.name), "cmpl-1", 1.0)
        entry.ask.meters.awaits_more = awaits_more
        found = await target_of(request, entry, wanted)
        await self._kept.sessions.pins.confirm(found.key, found.pin)
        if found.key:
            self._num_turns += 1
            now = SystemClock().now()
            told = {"pin": found.key, "generation": found.pin.generation, "created": now, "adapter": found.adapter}
            job = make_job(f"cmpl-{self._num_turns}", version=found.served.version, **told)
            await self._kept.journal.append([opened(job)])
        return found, entry

    def alias(self, name: str, *stood_for: str) -> None:
        """An alias that has stood for these deployments, one after the other."""
        first, *others = stood_for
        made = Alias(name=name, deployment=first, created=1.0)
        for other in others:
            made = made.switched(other)
        self._view.snapshot = replace(self._view.snapshot, aliases={name: made})

    def give(self, number: int, model: str = "small") -> None:
        """Gives the adapter ``sql`` of a model other files, which are named by a number."""
        files = AdapterFiles(digest=f"{number:x}" * 64, source="/x")
        adapters = self._view.snapshot.adapters
        old = adapters.get(f"{model}:sql") or Adapter(model=model, label="sql", files=(files,), created=1.0)
        self._view.snapshot = replace(self._view.snapshot, adapters={**adapters, old.id: old.with_files(files)})

    def set(self, changed: Deployment) -> None:
        """Changes a deployment."""
        found = self._view.snapshot
        self._view.snapshot = replace(found, deployments={**found.deployments, changed.name: changed})

    def add_large(self) -> None:
        """Another deployment, with versions of its own."""
        large = Deployment(
            name="large",
            model="large",
            members=(Member(version="large@v1", state=READY),),
            stable="large@v1",
            created=1.0,
        )
        found = self._view.snapshot
        versions = {**found.versions, "large@v1": version("v1", "large")}
        deployments = {**found.deployments, "large": large}
        self._view.snapshot = replace(found, versions=versions, deployments=deployments)


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


async def test_a_session_has_one_pin_by_an_alias_and_by_its_deployments_own_name(desk: Desk) -> None:
    desk.alias("fast", "small")
    first, _ = await desk.ask("fast@v2", "mine")
    again, entry = await desk.ask("small", "mine")
    assert (again.key, again.served.version, entry.is_first) == (first.key, V2, False)
    assert (await desk.ask("fast", "mine"))[0].served.version == V2


async def test_a_session_that_an_earlier_release_has_pinned_by_the_alias_stays_where_it_is(desk: Desk) -> None:
    desk.alias("fast", "small")
    key = pin_key("fast", "acme", session_header="mine")
    job = make_job("old", version=V2, pin=key, created=SystemClock().now())
    await desk._kept.journal.append([opened(job)])
    found, entry = await desk.ask("fast", "mine")
    assert (found.served.version, found.moved, entry.is_first) == (V2, None, False)


async def test_a_session_of_a_switched_alias_is_moved_and_told(desk: Desk) -> None:
    desk.add_large()
    desk.alias("fast", "small")
    assert (await desk.ask("fast", "mine"))[0].served.version == V1
    desk.alias("fast", "small", "large")
    found, _ = await desk.ask("fast", "mine")
    assert (found.served.version, found.moved) == ("large@v1", Moved(V1, "large@v1", "alias_switched"))
    assert (await desk.ask("small", "mine"))[0].served.version == V1, "by its own name it goes on where it was"
    other, _ = await desk.ask("fast", "another")
    assert other.moved is None


async def test_a_turn_whose_version_was_closed_while_its_prompt_was_rendered_is_not_accepted(desk: Desk) -> None:
    _, entry = await desk.ask("small@v2")
    assert entry.answering is not None
    entry.answering.offer.check_open(entry.answering.version)
    desk.put(MemberState.CLOSED)
    with pytest.raises(Unavailable) as refusal:
        entry.answering.offer.check_open(entry.answering.version)
    assert (refusal.value.code, refusal.value.retry_after_s) == ("version_closed", 0.5)


async def test_a_gateway_that_nobody_waits_for_begins_no_turn(desk: Desk) -> None:
    _, entry = await desk.ask("small")
    desk._view.is_awaited = False
    assert entry.answering is not None
    with pytest.raises(Unavailable) as refusal:
        entry.answering.offer.check_open(entry.answering.version)
    assert refusal.value.code == "registry_unavailable"


def test_a_turn_has_time_for_a_start_only_if_its_version_has_no_worker() -> None:
    patient = replace(deployment(), cold_patience_s=45.0)
    served = make_presence("w1").deployment
    warm = Target(deployment=patient, served=served, prompts=make_prompts(), pin=Pin(0, "small@v1"))
    assert warm.patience_s == 0.0
    assert replace(warm, awaits_worker=True).patience_s == 45.0


def files_of(found: Target) -> int:
    """The number of the files that a turn runs with."""
    assert found.adapter is not None
    assert found.adapter.digest == found.adapter.digest[0] * 64
    return int(found.adapter.digest[0], 16)


async def test_a_session_keeps_the_files_that_it_began_with_and_others_begin_with_the_latest(desk: Desk) -> None:
    desk.give(1)
    assert files_of((await desk.ask("small:sql", "mine"))[0]) == 1
    desk.give(2)
    again, entry = await desk.ask("small:sql", "mine")
    assert (files_of(again), again.moved, entry.is_first) == (1, None, False)
    assert files_of((await desk.ask("small:sql", "another"))[0]) == 2
    assert files_of((await desk.ask("small:sql"))[0]) == 2, "a turn that is its own session"
    desk._kept.live.lose_everything()
    assert files_of((await desk.ask("small:sql", "mine"))[0]) == 1, "its turns say so too"
    assert (await desk.ask("small", "mine"))[0].adapter is None, "the model itself is another session"


async def test_a_session_whose_files_are_not_kept_any_more_gets_the_latest_and_is_told(desk: Desk) -> None:
    desk.give(1)
    first, _ = await desk.ask("small:sql", "mine")
    for number in (2, 3, 4, 5):
        desk.give(number)
        assert files_of((await desk.ask("small:sql", "mine"))[0]) == 1
    desk.give(6)
    found, _ = await desk.ask("small:sql", "mine")
    assert files_of(found) == 6
    assert found.moved == Moved(first.pin.version, f"{V1}:{'6' * 12}", "unknown_version")
    desk.give(7)
    again, _ = await desk.ask("small:sql", "mine")
    assert (files_of(again), again.moved) == (6, None)


async def test_a_session_keeps_its_files_when_its_version_goes_and_its_version_when_its_files_go(desk: Desk) -> None:
    desk.give(1)
    going = rollout(share=10_000)
    desk.set(replace(deployment(going=going), stable=V1))
    await desk.ask("small:sql", "mine")
    assert (await desk.ask("small:sql", "mine"))[0].served.version == V2
    desk.set(deployment())
    await desk.ask("small:sql", "stable")
    desk.set(deployment(going=going))
    for number in range(2, 7):
        desk.give(number)
    found, _ = await desk.ask("small:sql", "stable")
    assert (found.served.version, files_of(found)) == (V1, 6), "a rollout is no reason to leave its version"
    desk.set(with_state(deployment(), V2, MemberState.CLOSED, now=1.0))
    desk.give(7)
    desk.set(replace(with_state(deployment(), V1, MemberState.CLOSED, now=1.0), stable=V2))
    found, _ = await desk.ask("small:sql", "stable")
    assert (found.served.version, files_of(found)) == (V2, 6), "another version is no reason to leave its files"
    assert found.moved == Moved(f"{V1}:{'6' * 12}", f"{V2}:{'6' * 12}", "version_removed")


async def test_a_rollout_of_the_base_model_draws_new_sessions_alone(desk: Desk) -> None:
    desk.give(1)
    began = {name: (await desk.ask("small:sql", name))[0].served.version for name in "abcdefgh"}
    assert set(began.values()) == {V1}
    desk.set(deployment(going=rollout(share=5_000)))
    desk.give(2)
    for name in began:
        found, _ = await desk.ask("small:sql", name)
        assert (found.served.version, files_of(found), found.moved) == (V1, 1, None)
    drawn = [(await desk.ask("small:sql", f"new-{number}"))[0] for number in range(12)]
    assert {files_of(each) for each in drawn} == {2}
    expected = [V2 if bucket_of("ro_1", each.key) < 5_000 else V1 for each in drawn]
    assert [each.served.version for each in drawn] == expected
    assert set(expected) == {V1, V2}
    desk.set(deployment())
    for each in range(12):
        found, _ = await desk.ask("small:sql", f"new-{each}")
        assert (found.served.version, found.moved) == (expected[each], None), "taken back, it keeps what it began on"


async def test_an_aliass_adapter_is_that_of_its_deployment_and_a_switch_is_told(desk: Desk) -> None:
    desk.add_large()
    desk.alias("fast", "small")
    desk.give(1)
    first, _ = await desk.ask("fast:sql", "mine")
    same, entry = await desk.ask("small:sql", "mine")
    assert (same.key, files_of(same), entry.is_first) == (first.key, 1, False)
    desk.alias("fast", "small", "large")
    with pytest.raises(NotFound):
        await desk.ask("fast:sql", "mine")
    desk.give(9, model="large")
    found, _ = await desk.ask("fast:sql", "mine")
    assert (found.served.version, files_of(found)) == ("large@v1", 9)
    assert found.moved == Moved(f"{V1}:{'1' * 12}", f"large@v1:{'9' * 12}", "alias_switched")


async def test_no_fallback_answers_for_an_adapter(desk: Desk) -> None:
    """Not even one of the same model: a fallback is another deployment, and a full or absent one is waited for."""
    desk.add_large()
    desk.give(1)
    desk.give(1, model="large")
    desk.set(replace(deployment(), fallbacks=("large",)))
    plain, adapted = (
        desk._offers.find(name, lambda each: True, tenant="acme", with_fallbacks=True)
        for name in ("small", "small:sql")
    )
    offer_at(plain, "large").fleet.learn([said("a", "large@v1")])
    desk._clock.advance(90.0)
    offer_at(plain, "large").fleet.learn([said("a", "large@v1")])
    assert [place.deployment for place in places(plain, "")] == ["large"]
    assert [place.deployment for place in places(adapted, "")] == ["small"]
    found, _ = await desk.ask("small:sql", "mine")
    assert (found.served.version, found.fallback) == (V1, "")
