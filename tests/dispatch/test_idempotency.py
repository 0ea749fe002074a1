"""The same request sent twice is one turn, whatever was lost in between."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.dispatch.idempotency import First, Idempotency, derived_id
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.turn import Turn, ended, opened
from axon.domain.wire import encode
from axon.errors import Conflict
from axon.runtime.clock import FakeClock
from tests.contracts.builders import claim_epoch, make_job

PREFIX, TENANT, KEY, DIGEST = "chatcmpl_", "acme", "order-17", "body-1"


@dataclass
class Turns:
    """A store that is a mapping."""

    turns: dict[str, Turn] = field(default_factory=dict)

    async def apply(self, turns: Sequence[Turn]) -> None:
        self.turns.update((turn.id, turn) for turn in turns)

    async def get(self, turn_id: str) -> Turn | None:
        return self.turns.get(turn_id)

    async def unfinished(self, *, limit: int, after: tuple[float, str] | None = None) -> Sequence[Turn]:
        return [turn for turn in self.turns.values() if not turn.state.terminal][:limit]

    async def purge(self, *, ended_before: float) -> int:
        raise NotImplementedError


@dataclass
class Place:
    """A log and a store, and what is asked of them."""

    live: MemoryLive = field(default_factory=lambda: open_memory_live(FakeClock(), retention_s=60.0))
    turns: Turns = field(default_factory=Turns)

    async def resolve(self, *, tenant: str = TENANT, key: str = KEY, digest: str = DIGEST) -> str | First:
        idempotency = Idempotency(self.live.log, self.turns)
        return await idempotency.resolve(prefix=PREFIX, tenant=tenant, key=key, body_digest=digest)

    async def open(self, job_id: str, *, digest: str = DIGEST) -> Job:
        job = make_job(job_id, tenant=TENANT, idempotency_key=KEY, body_digest=digest)
        await self.live.log.open(job.id, encode(job), reader_ttl_s=None)
        return job

    async def end(self, job: Job, state: str) -> None:
        """In log and store, as a worker does."""
        epoch = await claim_epoch(self.live.log, job.id, "worker", over=0)
        chunk = Chunk(first=1, epoch=epoch, terminal=state)
        await self.live.log.append([(job.id, chunk)])
        await self.turns.apply([ended(opened(job), (chunk,), at=200.0)])


@pytest.fixture
def place() -> Place:
    return Place()


async def new_id(place: Place) -> str:
    resolved = await place.resolve()
    assert isinstance(resolved, str)
    return resolved


async def test_a_new_key_gives_an_id_and_gives_it_again_until_it_is_used(place: Place) -> None:
    job_id = await new_id(place)
    assert job_id.startswith(PREFIX)
    assert await new_id(place) == job_id


async def test_a_used_key_gives_its_turn(place: Place) -> None:
    job = await place.open(await new_id(place))
    assert await place.resolve() == First(job, claimed=False)


async def test_a_turn_that_has_ended_is_still_its_keys(place: Place) -> None:
    job = await place.open(await new_id(place))
    await place.end(job, "completed")
    assert await place.resolve() == First(job, claimed=True)


@pytest.mark.parametrize("state", ["completed", "failed", "expired"])
async def test_a_turn_that_the_log_has_forgotten_is_found_in_the_store(place: Place, state: str) -> None:
    job = await place.open(await new_id(place))
    await place.end(job, state)
    place.live.lose_everything()
    assert await place.resolve() == First(job, claimed=True)


async def test_an_accepted_turn_that_only_the_store_knows_is_found_there(place: Place) -> None:
    job = await place.open(await new_id(place))
    await place.turns.apply([opened(job)])
    place.live.lose_everything()
    assert await place.resolve() == First(job, claimed=False)


async def test_a_turn_that_nobody_remembers_is_opened_under_the_same_id(place: Place) -> None:
    job = await place.open(await new_id(place))
    place.live.lose_everything()
    assert await place.resolve() == job.id


async def test_another_body_under_the_same_key_is_a_conflict_in_the_log_and_in_the_store(place: Place) -> None:
    job = await place.open(await new_id(place))
    with pytest.raises(Conflict):
        await place.resolve(digest="body-2")
    await place.end(job, "completed")
    place.live.lose_everything()
    with pytest.raises(Conflict):
        await place.resolve(digest="body-2")


async def test_a_turn_that_says_nothing_of_its_body_is_taken_for_the_same(place: Place) -> None:
    job = await place.open(await new_id(place), digest="")
    assert await place.resolve(digest="body-2") == First(job, claimed=False)


async def test_a_cancelled_turn_frees_its_key(place: Place) -> None:
    first = await place.open(await new_id(place))
    await place.end(first, "cancelled")
    second = await place.open(await new_id(place))
    assert second.id != first.id
    assert await place.resolve() == First(second, claimed=False)
    place.live.lose_everything()
    assert await place.resolve() == second.id  # the first one's end is in the store


async def test_a_turn_whose_end_was_asked_for_frees_its_key_before_it_has_ended(place: Place) -> None:
    first = await place.open(await new_id(place))
    await place.live.log.flag(first.id, cancel=True)
    assert await new_id(place) != first.id


async def test_a_turn_whose_client_asked_for_its_end_keeps_its_key(place: Place) -> None:
    job = await place.open(await new_id(place))
    await place.live.log.flag(job.id, cancel=True, asked=True)
    assert await place.resolve() == First(job, claimed=False)
    await place.end(job, "cancelled")
    assert await place.resolve() == First(job, claimed=True)
    with pytest.raises(Conflict):
        await place.resolve(digest="body-2")
    place.live.lose_everything()  # and with it who has asked
    assert await new_id(place) != job.id


async def test_a_turn_that_ended_before_it_could_be_cancelled_keeps_its_key(place: Place) -> None:
    job = await place.open(await new_id(place))
    await place.end(job, "completed")
    assert not await place.live.log.flag(job.id, cancel=True)
    assert await place.resolve() == First(job, claimed=True)


async def test_a_freed_key_may_have_another_body(place: Place) -> None:
    first = await place.open(await new_id(place))
    await place.end(first, "cancelled")
    assert isinstance(await place.resolve(digest="body-2"), str)


async def test_a_key_that_is_cancelled_for_ever_is_refused_in_the_end(place: Place) -> None:
    for generation in range(100):
        job = make_job(derived_id(PREFIX, TENANT, KEY, generation))
        await place.turns.apply([ended(opened(job), (Chunk(first=1, epoch=1, terminal="cancelled"),), at=1.0)])
    with pytest.raises(Conflict, match="too often"):
        await place.resolve()


async def test_a_key_is_its_tenants_own(place: Place) -> None:
    job = await place.open(await new_id(place))
    other = await place.resolve(tenant="other", digest="body-2")
    assert isinstance(other, str)
    assert other != job.id


async def test_a_stored_turn_that_was_purged_still_holds_its_key(place: Place) -> None:
    job = await place.open(await new_id(place))
    await place.end(job, "completed")
    place.live.lose_everything()
    place.turns.turns[job.id] = replace(place.turns.turns[job.id], job=replace(job, prompt_ids=()))
    first = await place.resolve()
    assert isinstance(first, First)
    assert (first.claimed, first.job.purged) == (True, True)


names = st.text(max_size=6)


@settings(deadline=None)
@given(st.tuples(names, names, st.integers(0, 99)), st.tuples(names, names, st.integers(0, 99)))
def test_two_ids_are_the_same_only_for_the_same_tenant_key_and_generation(
    one: tuple[str, str, int], other: tuple[str, str, int]
) -> None:
    assert (derived_id("x_", *one) == derived_id("x_", *other)) == (one == other)
