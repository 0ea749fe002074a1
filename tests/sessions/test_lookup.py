"""Where a turn is looked for: as short a way as there is for its owner, the same for a foreign one as for none."""

import pytest

from axon.domain.log.ownership import LogView
from axon.errors import DependencyDown
from tests.sessions.world import TENANT, Kept


async def test_a_turn_that_runs_is_found_without_a_barrier(kept: Kept) -> None:
    job = await kept.open("hello")
    kept.journal.stuck = True
    found = await kept.lookup.find(job.id, asker=TENANT)
    assert found is not None
    assert found.id == job.id


@pytest.mark.parametrize("asker", ["other", None])
async def test_a_foreign_turn_is_looked_for_where_an_unknown_one_is(
    kept: Kept, asker: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await kept.say("hello")
    read, num_log_reads = kept.live.log.read, 0

    async def counted(job_id: str, *, after: int) -> LogView | None:
        nonlocal num_log_reads
        num_log_reads += 1
        return await read(job_id, after=after)

    monkeypatch.setattr(kept.live.log, "read", counted)
    steps = []
    for turn_id in (job.id, "resp_unknown"):
        before = num_log_reads, kept.turns.num_reads
        found = await kept.lookup.find(turn_id, asker=asker)
        assert (found is None) == (asker is not None or turn_id != job.id)
        steps.append((num_log_reads - before[0], kept.turns.num_reads - before[1]))
    assert steps == ([(1, 1), (1, 1)] if asker else [(2, 0), (1, 1)])


async def test_when_the_store_cannot_be_asked_neither_can_tell(kept: Kept) -> None:
    job = await kept.say("hello")
    kept.journal.stuck = True
    for turn_id in (job.id, "resp_unknown"):
        with pytest.raises(DependencyDown):
            await kept.lookup.find(turn_id, asker="other")
