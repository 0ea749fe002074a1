import msgspec
import pytest
from hypothesis import given

from axon.domain.reply import (
    ChatReply,
    CompletionReply,
    MessagesReply,
    OtherReply,
    Reply,
    ResponseReply,
    from_wire,
    to_wire,
    without_words,
)
from tests.domain.strategies import replies

WORDS = {"words": ["of", "a", "client"]}


@given(replies())
def test_a_reply_comes_back_from_the_wire_as_it_was(reply: Reply) -> None:
    assert from_wire(msgspec.msgpack.decode(msgspec.msgpack.encode(to_wire(reply)))) == reply


def test_a_kind_of_a_later_release_is_kept_as_it_came() -> None:
    raw = {"route": "speech", "voice": "low"}
    assert from_wire(raw) == OtherReply(name="speech", extra={"voice": "low"})
    assert to_wire(from_wire(raw)) == raw


def test_fields_of_a_later_release_are_kept_as_they_came() -> None:
    raw = {"route": "chat", "model": "small", "tools": [1, 2]}
    assert from_wire(raw) == ChatReply(model="small", extra={"tools": [1, 2]})
    assert to_wire(from_wire(raw)) == raw


@pytest.mark.parametrize(("written", "read"), [("Say ", ("Say ",)), (("a", "b"), ("a", "b"))])
def test_the_echo_of_one_prompt_is_written_bare(written: object, read: tuple[str, ...]) -> None:
    assert from_wire({"route": "completion", "echo": written}) == CompletionReply(echo=read)
    assert to_wire(CompletionReply(echo=read))["echo"] == written


def test_an_older_releases_erased_turn_has_a_reply_of_no_kind() -> None:
    assert from_wire({}) == OtherReply()
    assert to_wire(OtherReply()) == {}


@pytest.mark.parametrize("raw", [{"route": "chat", "model": 7}, {"route": "response", "metadata": "no map"}])
def test_a_field_of_a_wrong_type_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        from_wire(raw)


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        (ChatReply(model="m", extra=WORDS), ChatReply(model="m")),
        (CompletionReply(model="m", echo=("secret",), best=2, extra=WORDS), CompletionReply(model="m", best=2)),
        (
            ResponseReply(model="m", instructions="secret", user="secret", metadata={"a": "secret"}, extra=WORDS),
            ResponseReply(model="m"),
        ),
        (MessagesReply(model="m", hides_thinking=True, extra=WORDS), MessagesReply(model="m", hides_thinking=True)),
        (OtherReply(name="speech", extra=WORDS), OtherReply(name="speech")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_nothing_that_a_client_wrote_stays_in_an_erased_reply_but_its_kind_does(reply: Reply, left: Reply) -> None:
    assert without_words(reply) == left
