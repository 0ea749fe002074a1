"""When a reader's gateway reads the log again and asks the store, decided from values alone: no log, no clock."""

from dataclasses import replace

from axon.domain.turn import TurnState
from axon.gateway.turn.reader import PollTimer, Reader
from tests.contracts.builders import make_ended, make_job

JOB = make_job("chatcmpl-1")


def test_the_log_is_read_ever_more_rarely_while_the_stream_is_silent() -> None:
    timer = PollTimer(100.0)
    assert [timer.reread_in_s(now) for now in (100.0, 100.5, 103.0, 200.0)] == [1.0, 1.0, 3.0, 5.0]
    timer.chunk_sent(200.0)
    assert timer.reread_in_s(200.5) == 1.0


def test_the_store_is_asked_after_three_seconds_of_silence_and_then_each_time_it_has_doubled() -> None:
    timer = PollTimer(0.0)
    due = [now for now in range(60) if timer.store_is_due(float(now), is_beyond=False)]
    assert due == [3, 6, 12, 24, 48]


def test_a_chunk_ends_the_silence_after_which_the_store_is_asked() -> None:
    timer = PollTimer(0.0)
    assert timer.store_is_due(40.0, is_beyond=False)
    timer.chunk_sent(50.0)
    assert not timer.store_is_due(52.0, is_beyond=False)
    assert timer.store_is_due(53.0, is_beyond=False)


def test_the_store_is_asked_at_once_and_once_when_the_reader_is_beyond_the_log() -> None:
    timer = PollTimer(0.0)
    assert timer.store_is_due(0.1, is_beyond=True)
    assert not timer.store_is_due(0.2, is_beyond=True)
    assert not timer.store_is_due(0.3, is_beyond=False)
    assert timer.store_is_due(0.4, is_beyond=True)


def test_a_reader_knows_the_end_only_of_a_turn_that_had_ended_before_it_came() -> None:
    ended = make_ended(JOB)
    assert Reader(JOB, found=ended).end is ended
    assert Reader(JOB, found=replace(ended, state=TurnState.OPENED)).end is None
    assert Reader(JOB).end is None


def test_a_heartbeat_counts_for_as_long_as_the_job_allows_and_at_most_as_the_server_does() -> None:
    assert Reader().ttl_s(30.0) == 30.0
    assert Reader(replace(JOB, reader_grace_s=20.0)).ttl_s(30.0) == 20.0
    assert Reader(replace(JOB, reader_grace_s=90.0)).ttl_s(30.0) == 30.0
