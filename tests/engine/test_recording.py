"""An engine's profiles: begun by a message, sent by the thread of the steps, one at a time."""

from axon.engine.protocol.messages import Abort, Record, Recorded, StopRecord
from axon.engine.recording import Recordings
from axon.profiling.packing import unpack
from axon.profiling.profile import CpuProfile, Kind, StepsProfile
from tests.journeys.server import wait_until


class Sent:
    def __init__(self) -> None:
        self.messages: list[Recorded] = []

    def send(self, message: Recorded) -> None:
        self.messages.append(message)


def all_sent(recordings: Recordings, sent: Sent) -> bool:
    recordings.send_done(sent)
    return not recordings.is_on


def test_a_record_is_taken_out_of_the_messages_and_answered_under_its_number() -> None:
    recordings, sent = Recordings(), Sent()
    rest = recordings.take([Abort(ids=["1"]), Record(7, "cpu", 0.1)])
    assert rest == [Abort(ids=["1"])]
    assert recordings.is_on
    wait_until(lambda: all_sent(recordings, sent), "the profile is sent")
    [recorded] = sent.messages
    assert recorded.id == 7
    assert isinstance(unpack(Kind.CPU, recorded.packed), CpuProfile)


def test_a_second_one_is_refused_and_the_first_goes_on() -> None:
    recordings, sent = Recordings(), Sent()
    recordings.take([Record(1, "steps", 60.0), Record(2, "memory", 0.1)])
    recordings.send_done(sent)
    assert [(each.id, each.code) for each in sent.messages] == [(2, "profile_running")]
    recordings.close()
    wait_until(lambda: all_sent(recordings, sent), "the first one is sent")
    assert sent.messages[1].id == 1
    assert isinstance(unpack(Kind.STEPS, sent.messages[1].packed), StepsProfile)


def test_a_kind_that_the_engine_does_not_know_fails_alone() -> None:
    recordings, sent = Recordings(), Sent()
    assert recordings.take([Record(3, "weather", 0.1)]) == []
    assert all_sent(recordings, sent)
    assert [(each.id, each.code) for each in sent.messages] == [(3, "profile_failed")]


def test_one_that_nobody_waits_for_ends_and_no_other() -> None:
    recordings, sent = Recordings(), Sent()
    recordings.take([Record(1, "steps", 60.0), Record(2, "memory", 0.1)])
    assert recordings.take([StopRecord(2), Abort(ids=["1"])]) == [Abort(ids=["1"])]
    recordings.send_done(sent)
    assert recordings.is_on
    recordings.take([StopRecord(1)])
    wait_until(lambda: all_sent(recordings, sent), "the first one is sent")
