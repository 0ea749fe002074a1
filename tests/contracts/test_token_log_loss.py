"""The token log's contract where it loses or forgets: what is missing is said, and what was lost is not made up."""

from dataclasses import replace

import pytest

from axon.ports.live import Appended, AppendStatus, Live, TokenLog
from tests.contracts.backends import RETENTION_S, LiveBackend
from tests.contracts.builders import make_chunk
from tests.contracts.log_calls import JOB, append, claimed, ids, read


@pytest.fixture
def log(live: Live) -> TokenLog:
    return live.log


@pytest.fixture
async def epoch(log: TokenLog) -> int:
    """Of a stream that is open, waits for no reader and is claimed by worker w1."""
    return await claimed(log)


class TestLosing:
    async def test_after_a_flush_every_job_is_missing(self, lives: LiveBackend, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, epoch=epoch))
        await lives.lose_everything()
        assert await log.read(JOB, after=0) is None
        assert (await append(log, make_chunk(2, epoch=epoch))).status is AppendStatus.MISSING
        assert await log.claim(JOB, "w1", over=epoch) is None

    async def test_after_a_flush_the_epoch_still_grows_so_the_old_owner_is_fenced(
        self, lives: LiveBackend, log: TokenLog, epoch: int
    ) -> None:
        await lives.lose_everything()
        await lives.pass_time(0.05)
        again = await claimed(log)
        assert again > epoch
        assert (await append(log, make_chunk(1, epoch=epoch))).status is AppendStatus.FENCED
        assert (await append(log, make_chunk(1, epoch=again))).status is AppendStatus.OK

    async def test_after_a_lost_tail_the_owner_is_told_where_to_go_on(
        self, lives: LiveBackend, log: TokenLog, epoch: int
    ) -> None:
        await append(log, make_chunk(1, 3, epoch=epoch))
        await append(log, make_chunk(4, 2, epoch=epoch))
        await lives.lose_tail(JOB, 3)
        assert ids(await read(log)) == [1, 2, 3]
        assert await append(log, make_chunk(6, epoch=epoch)) == Appended(AppendStatus.GAP, 3)
        assert await append(log, make_chunk(4, 3, epoch=epoch)) == Appended(AppendStatus.OK, 6)

    async def test_a_job_whose_terminal_chunk_is_lost_has_not_ended(
        self, lives: LiveBackend, log: TokenLog, epoch: int
    ) -> None:
        await append(log, make_chunk(1, 2, epoch=epoch))
        await append(log, make_chunk(3, 1, epoch=epoch, terminal="completed"))
        await lives.lose_tail(JOB, 2)
        assert not (await read(log)).ended
        await lives.grow_old(RETENTION_S * 2)
        again = make_chunk(3, 1, epoch=epoch, terminal="completed")
        assert await append(log, again) == Appended(AppendStatus.OK, 3)

    async def test_a_job_that_lost_everything_but_its_name_starts_at_one(
        self, lives: LiveBackend, log: TokenLog, epoch: int
    ) -> None:
        await append(log, replace(make_chunk(1, 2), epoch=epoch))
        await lives.lose_tail(JOB, 0)
        assert await append(log, make_chunk(3, epoch=epoch)) == Appended(AppendStatus.GAP, 0)


class TestForgetting:
    async def test_an_ended_stream_can_be_forgotten_at_once(self, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, 2, epoch=epoch, terminal="completed"))
        assert await log.forget(JOB, in_s=0)
        assert await log.read(JOB, after=0) is None
        assert not await log.forget(JOB, in_s=0)
        assert await log.open(JOB, b"anew", reader_ttl_s=None)
        assert ids(await read(log)) == []

    async def test_one_that_is_to_be_forgotten_soon_can_be_read_until_then(
        self, lives: LiveBackend, log: TokenLog, epoch: int
    ) -> None:
        await append(log, make_chunk(1, 2, epoch=epoch, terminal="completed"))
        assert await log.forget(JOB, in_s=RETENTION_S / 4)
        assert ids(await read(log)) == [1, 2]
        await lives.grow_old(RETENTION_S / 2)
        assert await log.read(JOB, after=0) is None

    async def test_no_stream_is_kept_longer_by_it(self, lives: LiveBackend, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, 2, epoch=epoch, terminal="completed"))
        assert await log.forget(JOB, in_s=3600.0)
        await lives.grow_old(RETENTION_S * 1.5)
        assert await log.read(JOB, after=0) is None

    async def test_a_running_stream_is_not_forgotten(self, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, 2, epoch=epoch))
        assert not await log.forget(JOB, in_s=0)
        assert ids(await read(log)) == [1, 2]
