"""The token log's contract: one owner writes each seq once; readers come from anywhere.

Missing means lost or long over: the store is asked, and the stream opened again from the job.
"""

from dataclasses import replace

import pytest

from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.log.ownership import LogView
from axon.ports.live import STOPS, Appended, AppendStatus, Live, TokenLog, stream_channel
from tests.contracts.backends import RETENTION_S, LiveBackend
from tests.contracts.builders import claim_epoch, make_chunk
from tests.contracts.log_calls import JOB, append, claimed, ids, read


@pytest.fixture
def log(live: Live) -> TokenLog:
    return live.log


@pytest.fixture
async def epoch(log: TokenLog) -> int:
    """Of a stream that is open, waits for no reader and is claimed by worker w1."""
    return await claimed(log)


class TestOpening:
    async def test_a_stream_opens_once(self, log: TokenLog) -> None:
        assert await log.open(JOB, b"job", reader_ttl_s=None)
        assert not await log.open(JOB, b"other", reader_ttl_s=None)
        assert (await read(log)).body == b"job"

    async def test_a_new_stream_is_nobodys_and_empty(self, log: TokenLog) -> None:
        await log.open(JOB, b"job", reader_ttl_s=None)
        view = await read(log)
        assert view == LogView(body=b"job", epoch=0, owner="", last=0, ended=False, cancelled=False)

    async def test_an_unknown_job_is_missing_to_everybody(self, log: TokenLog) -> None:
        assert await log.read(JOB, after=0) is None
        assert await log.claim(JOB, "w1", over=0) is None
        assert not await log.flag(JOB, cancel=True)
        assert await append(log, make_chunk(1)) == Appended(AppendStatus.MISSING, 0)
        await log.release(JOB, 1, crashes=0)


class TestViews:
    async def test_several_jobs_are_looked_at_together_and_without_their_chunks(self, log: TokenLog) -> None:
        for job_id in (JOB, "other"):
            await log.open(job_id, b"job", reader_ttl_s=None)
        epoch = await claim_epoch(log, JOB, "w1", over=0)
        await append(log, make_chunk(1, epoch=epoch))
        await log.flag("other", cancel=True, asked=True)
        mine, unknown, other = await log.views([JOB, "unknown", "other"])
        assert mine == replace(await read(log), chunks=())
        assert mine.last > 0
        assert unknown is None
        assert other is not None
        assert (other.owner, other.cancelled, other.asked) == ("", True, True)
        assert not await log.views([])


class TestClaiming:
    async def test_a_claim_raises_the_epoch_and_names_the_owner(self, log: TokenLog, epoch: int) -> None:
        view = await read(log)
        assert epoch > 0
        assert (view.epoch, view.owner) == (epoch, "w1")

    async def test_of_two_who_claim_over_the_same_epoch_one_gets_it(self, log: TokenLog) -> None:
        await log.open(JOB, b"job", reader_ttl_s=None)
        claims = [await log.claim(JOB, owner, over=0) for owner in ("w1", "w2")]
        assert claims[0] is not None
        assert claims[1] is None

    async def test_a_later_claim_has_a_higher_epoch_at_the_same_instant(self, log: TokenLog, epoch: int) -> None:
        second = await claim_epoch(log, JOB, "w2", over=epoch)
        assert second > epoch

    async def test_a_release_frees_the_job_under_its_own_epoch_only(self, log: TokenLog, epoch: int) -> None:
        await log.release(JOB, epoch - 1, crashes=0)
        assert (await read(log)).owner == "w1"
        await log.release(JOB, epoch, crashes=0)
        view = await read(log)
        assert (view.owner, view.epoch) == ("", epoch)

    async def test_a_job_is_claimed_first_without_a_crash(self, log: TokenLog) -> None:
        await log.open(JOB, b"job", reader_ttl_s=None)
        claimed = await log.claim(JOB, "w1", over=0)
        assert claimed is not None
        assert claimed.crashes == 0

    async def test_the_crash_count_of_a_release_comes_with_every_later_claim(self, log: TokenLog, epoch: int) -> None:
        await log.release(JOB, epoch, crashes=2)
        second = await log.claim(JOB, "w2", over=epoch)
        assert second is not None
        assert (second.crashes, (await read(log)).owner) == (2, "w2")
        third = await log.claim(JOB, "w3", over=second.epoch)  # after w2's lease has lapsed
        assert third is not None
        assert third.crashes == 2

    async def test_a_release_that_comes_too_late_changes_no_crash_count(self, log: TokenLog, epoch: int) -> None:
        second = await claim_epoch(log, JOB, "w2", over=epoch)
        await log.release(JOB, epoch, crashes=5)
        third = await log.claim(JOB, "w3", over=second)
        assert third is not None
        assert third.crashes == 0

    async def test_a_claim_on_an_ended_job_is_refused(self, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, epoch=epoch, terminal="completed"))
        assert await log.claim(JOB, "w2", over=epoch) is None

    async def test_a_cancelled_job_can_be_claimed_to_write_its_end(self, log: TokenLog) -> None:
        await log.open(JOB, b"job", reader_ttl_s=None)
        await log.flag(JOB, cancel=True)
        epoch = await claim_epoch(log, JOB, "w1", over=0)
        assert (await append(log, make_chunk(1, 0, epoch=epoch, terminal="cancelled"))).status is AppendStatus.OK


class TestAppending:
    async def test_tokens_are_numbered_on_from_the_last(self, log: TokenLog, epoch: int) -> None:
        assert await append(log, make_chunk(1, 2, epoch=epoch)) == Appended(AppendStatus.OK, 2)
        assert await append(log, make_chunk(3, 1, epoch=epoch)) == Appended(AppendStatus.OK, 3)
        assert ids(await read(log)) == [1, 2, 3]

    async def test_a_chunk_comes_back_as_it_was_written(self, log: TokenLog, epoch: int) -> None:
        chunk = Chunk(
            first=1,
            epoch=epoch,
            tokens=(Token(0, 5, "é\x00"), Token(1, 6, "")),
            ends=(End(1, "length"),),
            terminal="failed",
            code="worker_crash",
            message="it died",
            extra={"later": [1]},
        )
        await append(log, chunk)
        assert (await read(log)).chunks == (chunk,)

    @pytest.mark.parametrize("first", [1, 2, 5], ids=["repeat", "overlap", "hole"])
    async def test_a_chunk_that_does_not_follow_is_a_gap_and_tells_the_last(
        self, log: TokenLog, epoch: int, first: int
    ) -> None:
        await append(log, make_chunk(1, 3, epoch=epoch))
        assert await append(log, make_chunk(first, epoch=epoch)) == Appended(AppendStatus.GAP, 3)
        assert ids(await read(log)) == [1, 2, 3]

    async def test_an_old_epoch_is_fenced_and_writes_nothing(self, log: TokenLog, epoch: int) -> None:
        await log.claim(JOB, "w2", over=epoch)
        assert await append(log, make_chunk(1, epoch=epoch)) == Appended(AppendStatus.FENCED, 0)
        assert ids(await read(log)) == []

    async def test_an_epoch_that_was_never_given_is_fenced(self, log: TokenLog, epoch: int) -> None:
        assert (await append(log, make_chunk(1, epoch=epoch + 1))).status is AppendStatus.FENCED

    async def test_an_ended_stream_takes_no_more_from_anybody(self, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, epoch=epoch, terminal="completed"))
        for late in (make_chunk(2, epoch=epoch), make_chunk(9, epoch=1), make_chunk(2, epoch=epoch, terminal="failed")):
            assert await append(log, late) == Appended(AppendStatus.DONE, 1)
        assert (await read(log)).chunks[-1].terminal == "completed"

    async def test_fencing_comes_before_the_gap_and_the_gap_before_the_cancel(self, log: TokenLog, epoch: int) -> None:
        await log.flag(JOB, cancel=True)
        assert (await append(log, make_chunk(9, epoch=epoch - 1))).status is AppendStatus.FENCED
        assert (await append(log, make_chunk(9, epoch=epoch))).status is AppendStatus.GAP
        assert (await append(log, make_chunk(1, epoch=epoch))).status is AppendStatus.CANCEL

    async def test_each_chunk_of_a_batch_is_judged_alone(self, log: TokenLog, epoch: int) -> None:
        chunk = make_chunk(1, epoch=epoch)
        batch = [(JOB, chunk), ("turn_unknown", chunk), (JOB, make_chunk(2, epoch=epoch))]
        assert [appended.status for appended in await log.append(batch)] == [
            AppendStatus.OK,
            AppendStatus.MISSING,
            AppendStatus.OK,
        ]

    async def test_an_empty_batch_and_an_empty_chunk_change_nothing(self, log: TokenLog, epoch: int) -> None:
        assert list(await log.append([])) == []
        assert await append(log, make_chunk(1, 0, epoch=epoch)) == Appended(AppendStatus.OK, 0)
        assert (await read(log)).chunks == ()

    async def test_an_append_wakes_the_streams_listeners(self, live: Live, log: TokenLog, epoch: int) -> None:
        async with live.wakeups.listen(stream_channel(JOB)) as listener:
            await append(log, make_chunk(1, epoch=epoch))
            assert await listener.next(30.0) is not None

    async def test_a_refused_append_wakes_nobody(self, live: Live, log: TokenLog, epoch: int) -> None:
        async with live.wakeups.listen(stream_channel(JOB)) as listener:
            await append(log, make_chunk(5, epoch=epoch))
            assert await listener.next(0.01) is None


class TestReading:
    async def test_a_reader_gets_what_is_past_its_seq_cut_inside_a_chunk(self, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, 3, epoch=epoch))
        await append(log, make_chunk(4, 2, epoch=epoch))
        for after in range(6):
            view = await read(log, after)
            assert ids(view) == list(range(after + 1, 6))
            assert view.last == 5
            assert all(chunk.tokens[0].id == chunk.first for chunk in view.chunks)

    async def test_a_reader_past_the_end_sees_where_the_log_ends(self, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, 2, epoch=epoch))
        view = await read(log, after=7)
        assert (view.last, view.chunks) == (2, ())

    @pytest.mark.parametrize("count", [0, 2], ids=["alone", "with tokens"])
    async def test_a_reader_who_has_every_token_still_learns_how_it_ended(
        self, log: TokenLog, epoch: int, count: int
    ) -> None:
        await append(log, make_chunk(1, 3, epoch=epoch))
        await append(log, make_chunk(4, count, epoch=epoch, terminal="completed", ends=(End(0, "stop"),)))
        view = await read(log, after=3 + count)
        assert view.ended
        assert ids(view) == []
        assert [(chunk.terminal, chunk.ends) for chunk in view.chunks] == [("completed", (End(0, "stop"),))]

    async def test_an_end_mark_between_tokens_is_not_lost_to_a_reader_right_before_it(
        self, log: TokenLog, epoch: int
    ) -> None:
        await append(log, make_chunk(1, 2, epoch=epoch))
        await append(log, make_chunk(3, 0, epoch=epoch, ends=(End(0, "stop"),)))
        await append(log, make_chunk(3, 1, epoch=epoch))
        view = await read(log, after=2)
        assert [chunk.ends for chunk in view.chunks] == [(End(0, "stop"),), ()]
        assert ids(view) == [3]


class TestEnding:
    async def test_a_cancel_is_told_to_the_owner_and_the_end_is_taken(self, log: TokenLog, epoch: int) -> None:
        assert await log.flag(JOB, cancel=True)
        assert (await read(log)).cancelled
        assert await append(log, make_chunk(1, epoch=epoch)) == Appended(AppendStatus.CANCEL, 0)
        assert await append(log, make_chunk(1, 0, epoch=epoch, terminal="cancelled")) == Appended(AppendStatus.OK, 0)
        assert (await read(log)).ended

    async def test_an_end_without_a_token_that_comes_together_with_a_cancel_stands(
        self, log: TokenLog, epoch: int
    ) -> None:
        await append(log, make_chunk(1, epoch=epoch))
        await log.flag(JOB, cancel=True)
        assert await append(log, make_chunk(2, 0, epoch=epoch, terminal="completed")) == Appended(AppendStatus.OK, 1)

    async def test_no_token_is_taken_after_a_cancel_not_even_with_an_end(self, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, epoch=epoch))
        await log.flag(JOB, cancel=True)
        late = make_chunk(2, epoch=epoch, terminal="completed")
        assert await append(log, late) == Appended(AppendStatus.CANCEL, 1)
        assert not (await read(log)).ended

    async def test_the_log_keeps_whether_the_client_asked_for_a_cancel(self, log: TokenLog, epoch: int) -> None:
        assert not (await read(log)).asked
        await log.flag(JOB, cancel=True)
        view = await read(log)
        assert (view.cancelled, view.absent, view.asked) == (True, False, False)
        await log.flag(JOB, cancel=True, asked=True)
        assert ((await read(log)).cancelled, (await read(log)).asked) == (True, True)
        await log.flag(JOB, cancel=True)  # somebody else's comes after it
        assert (await read(log)).asked
        await append(log, make_chunk(1, 0, epoch=epoch, terminal="cancelled"))
        assert (await read(log)).asked

    async def test_the_log_keeps_that_the_client_was_refused_whatever_is_said_besides(
        self, log: TokenLog, epoch: int
    ) -> None:
        await log.flag(JOB, cancel=True)
        assert not (await read(log)).refused
        for said in ({"refused": True}, {"asked": True}, {}):
            await log.flag(JOB, cancel=True, **said)
            view = await read(log)
            assert (view.cancelled, view.refused, view.asked, view.absent) == (True, True, False, False)
        assert await append(log, make_chunk(1, epoch=epoch)) == Appended(AppendStatus.CANCEL, 0)
        await append(log, make_chunk(1, 0, epoch=epoch, terminal="cancelled"))
        assert (await read(log)).refused

    async def test_a_job_that_is_confirmed_cannot_be_refused_and_one_that_was_refused_not_be_confirmed(
        self, log: TokenLog, epoch: int
    ) -> None:
        assert await log.confirm(JOB)
        assert not await log.flag(JOB, cancel=True, refused=True)
        view = await read(log)
        assert (view.cancelled, view.refused) == (False, False)
        assert await append(log, make_chunk(1, epoch=epoch)) == Appended(AppendStatus.OK, 1)
        assert await log.flag(JOB, cancel=True, asked=True), "its client may still stop it"
        assert await log.confirm(JOB)
        await log.open("other", b"job", reader_ttl_s=None)
        await log.flag("other", cancel=True, refused=True)
        assert not await log.confirm("other")
        assert await log.confirm("missing")
        assert await log.read("missing", after=0) is None

    async def test_a_cancel_is_heard_by_workers_with_the_jobs_id(self, live: Live, log: TokenLog, epoch: int) -> None:
        async with live.wakeups.listen(STOPS) as listener:
            await log.flag(JOB, cancel=True)
            assert await listener.next(30.0) == JOB.encode()

    async def test_a_cancel_after_the_end_comes_too_late(self, log: TokenLog, epoch: int) -> None:
        await append(log, make_chunk(1, epoch=epoch, terminal="completed"))
        assert not await log.flag(JOB, cancel=True)
        assert not (await read(log)).cancelled

    async def test_an_ended_stream_is_kept_for_the_retention_time_then_missing(
        self, lives: LiveBackend, log: TokenLog, epoch: int
    ) -> None:
        await append(log, make_chunk(1, epoch=epoch, terminal="completed"))
        await lives.grow_old(RETENTION_S / 2)
        assert (await read(log)).ended
        await lives.grow_old(RETENTION_S)
        assert await log.read(JOB, after=0) is None
        assert await log.open(JOB, b"job", reader_ttl_s=None)

    async def test_an_unfinished_stream_outlives_the_retention_time(
        self, lives: LiveBackend, log: TokenLog, epoch: int
    ) -> None:
        await lives.grow_old(RETENTION_S * 2)
        assert (await append(log, make_chunk(1, epoch=epoch))).status is AppendStatus.OK


class TestReaders:
    async def test_a_job_whose_reader_stays_away_is_cancelled(self, lives: LiveBackend, log: TokenLog) -> None:
        epoch = await claimed(log, reader_ttl_s=0.5)
        assert (await append(log, make_chunk(1, epoch=epoch))).status is AppendStatus.OK
        await lives.pass_time(0.6)
        view = await read(log)
        assert (view.cancelled, view.absent, view.asked) == (True, True, False)
        assert (await append(log, make_chunk(2, epoch=epoch))).status is AppendStatus.ABSENT
        assert (await append(log, make_chunk(2, 0, epoch=epoch, terminal="cancelled"))).status is AppendStatus.OK
        assert not (await read(log)).absent, "it has ended"

    async def test_a_reader_who_says_it_is_there_keeps_the_job_going(self, lives: LiveBackend, log: TokenLog) -> None:
        epoch = await claimed(log, reader_ttl_s=0.5)
        assert await log.flag(JOB, reader_ttl_s=1.5)
        await lives.pass_time(0.6)
        assert (await append(log, make_chunk(1, epoch=epoch))).status is AppendStatus.OK
        await lives.pass_time(1.0)
        assert (await append(log, make_chunk(2, epoch=epoch))).status is AppendStatus.ABSENT

    async def test_a_second_reader_with_a_shorter_time_takes_nothing_from_the_first(
        self, lives: LiveBackend, log: TokenLog
    ) -> None:
        await claimed(log, reader_ttl_s=10.0)
        await log.flag(JOB, reader_ttl_s=0.05)
        await lives.pass_time(0.2)
        assert not (await read(log)).cancelled

    async def test_a_job_that_waits_for_no_reader_never_starts_to(
        self, lives: LiveBackend, log: TokenLog, epoch: int
    ) -> None:
        assert await log.flag(JOB, reader_ttl_s=0.05)
        await lives.pass_time(0.2)
        assert not (await read(log)).cancelled

    async def test_a_reader_who_leaves_after_the_end_cancels_nothing(self, lives: LiveBackend, log: TokenLog) -> None:
        epoch = await claimed(log, reader_ttl_s=0.5)
        await append(log, make_chunk(1, epoch=epoch, terminal="completed"))
        await lives.pass_time(0.6)
        assert not (await read(log)).cancelled

    async def test_a_reader_does_not_undo_a_cancel(self, log: TokenLog) -> None:
        await claimed(log, reader_ttl_s=0.1)
        await log.flag(JOB, cancel=True)
        await log.flag(JOB, reader_ttl_s=1.0)
        assert (await read(log)).cancelled
