"""What is known of grammars is bounded, in number and in bytes."""

from axon.sessions.known_results import KnownResults
from axon.text.compiler.messages import Result


def test_the_one_that_was_asked_for_longest_ago_is_forgotten_first() -> None:
    known = KnownResults(max_entries=2)
    for name in (b"a", b"b"):
        known.keep(name, Result())
    assert known.get(b"a") is not None
    known.keep(b"c", Result(problem="no"))
    assert [known.get(name) is not None for name in (b"a", b"b", b"c")] == [True, False, True]


def test_long_texts_take_the_room_of_many() -> None:
    known = KnownResults(max_bytes=100_000)
    for number in range(50):
        known.keep(b"%d" % number, Result())
    known.keep(b"large", Result(made="x" * 90_000))
    assert known.get(b"large") is not None
    assert len(known) < 50
    for _ in range(3):
        known.keep(b"large", Result(made="x" * 90_000))
    assert known.get(b"49") is not None, "one that is kept again is counted once"
