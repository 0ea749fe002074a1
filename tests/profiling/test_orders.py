"""Messages are read as they were sent; those of another release are left alone."""

from axon.errors import AlreadyProfiled
from axon.profiling.orders import Began, Done, Here, Order, Refused, RollCall, Subject, answered, asked, encode
from axon.profiling.profile import Kind


def test_every_message_is_read_as_it_was_sent() -> None:
    subject = Subject(name="w/echo", role="engine", pid=7, host="h", model="echo")
    for call in (RollCall("1"), Order("1", "w", Kind.CPU, 2.0)):
        assert asked(encode(call)) == call
    for answer in (Here([subject]), Began(), Done(), Refused("Busy", "No.", "busy")):
        assert answered(encode(answer)) == answer


def test_what_is_not_known_is_nothing() -> None:
    for payload in (b"", b"\xc1", b"nonsense", encode(Began())):
        assert asked(payload) is None
    assert answered(encode(RollCall("1"))) is None


def test_an_error_is_the_same_at_the_other_end() -> None:
    error = Refused.of(AlreadyProfiled()).error()
    assert isinstance(error, AlreadyProfiled)
    assert error.code == "profile_running"
