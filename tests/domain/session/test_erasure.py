"""A turn without its words: none of them is anywhere in its record, and the bill is the same."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.content.item import Item
from axon.domain.log.chunk import Details, Token
from axon.domain.reply import ChatReply, CompletionReply, OtherReply, Reply, ResponseReply
from axon.domain.session.erasure import session_mark, turn_mark, without_words
from axon.domain.turn import Turn, opened
from axon.domain.wire import encode
from tests.domain.strategies import make_job, turns

SECRET = "the-secret-word"
REPLIES: tuple[Reply, ...] = (
    ChatReply(model="small", extra={"later": SECRET}),
    CompletionReply(model="small", echo=(SECRET, SECRET), extra={"later": SECRET}),
    ResponseReply(
        model="small",
        instructions=SECRET,
        user=SECRET,
        safety_identifier=SECRET,
        prompt_cache_key=SECRET,
        metadata={SECRET: SECRET},
        extra={"later": SECRET},
    ),
    OtherReply(name="later", extra={"words": [SECRET]}),
)


def told(turn: Turn, reply: Reply) -> Turn:
    """The turn with the secret in everything that a client or the model writes."""
    job = replace(
        turn.job,
        items=(Item(id="msg_1", role="user", texts=(SECRET,)),),
        sampling=replace(turn.job.sampling, grammar=SECRET, stop=(SECRET,)),
        reply=reply,
        idempotency_key=SECRET,
        body_digest=SECRET,
        extra={"later": SECRET},
    )
    tokens = (Token(0, 1, SECRET, Details(reasoning=SECRET, data=SECRET.encode())), *turn.tokens)
    return replace(turn, job=job, tokens=tokens, message=SECRET, extra={"later": [SECRET]})


@given(turns(), st.sampled_from(REPLIES))
def test_no_word_is_left_anywhere_in_the_record(turn: Turn, reply: Reply) -> None:
    full = told(turn, reply)
    assert SECRET.encode() in encode(full)
    assert SECRET.encode() not in encode(without_words(full))


@given(turns())
def test_what_the_bill_and_the_history_need_stays(turn: Turn) -> None:
    def kept(found: Turn) -> dict[str, Any]:
        names = ("id", "tenant", "state", "opened_at", "ended_at", "usage", "ledger", "code")
        job = ("id", "tenant", "deployment", "version", "session", "ordinal", "previous", "created", "price", "choices")
        return {name: getattr(found, name) for name in names} | {
            f"job.{name}": getattr(found.job, name) for name in job
        }

    bare = without_words(turn)
    assert kept(bare) == kept(turn)
    assert bare.job.purged
    assert without_words(bare) == bare


def test_the_name_of_the_model_stays() -> None:
    found = [without_words(opened(make_job(reply=reply))).job.reply.model for reply in REPLIES]
    assert found == ["small", "small", "small", ""]


@given(st.text(max_size=8), st.text(max_size=8))
def test_the_mark_of_a_turn_is_never_that_of_a_session(one: str, other: str) -> None:
    assert turn_mark(one) != session_mark(other)
    assert (turn_mark(one) == turn_mark(other)) == (one == other)
    assert (session_mark(one) == session_mark(other)) == (one == other)
