"""Tool calls in a worker's hands: parsed out of the text, the same after a replay at any token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.sampling import Sampling
from axon.engine.protocol.messages import Emitted
from axon.ports.queue import Delivery
from axon.text.tokenizer import ByteTokenizer
from axon.text.tools.prompt import call_message
from axon.worker.job.running import Running
from tests.contracts.builders import make_job

CALL = '<tool_call>\n{"name": "f", "arguments": {"city": "Zürich"}}\n</tool_call>'
ANSWER = f"I look it up.\n{CALL}\n{CALL}"
IDS = list(ANSWER.encode())


def make_running(*, max_calls: int = 0, reasoning: str = "", stop: tuple[str, ...] = ()) -> Running:
    sampling = Sampling(max_tokens=1000, stop=stop)
    job = make_job(sampling=sampling, call_format="hermes", max_calls=max_calls, reasoning=reasoning)
    delivery = Delivery(tag=1, lane=job.lane, body=b"", redelivered=False)
    return Running(job=job, delivery=delivery, epoch=1, tokenizer=ByteTokenizer())


def run(running: Running, ids: list[int], finish: str = "stop") -> Running:
    left = ids[len(running.tokens) :]
    for place, token_id in enumerate(left, start=1):
        if running.push(running.choices[0], Emitted("", token_id, finish if place == len(left) else None)):
            break
    return running


def calls_of(tokens: list[Token]) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []
    for token in tokens:
        for piece in token.details.calls if token.details else ():
            if piece.name:
                calls.append((piece.name, ""))
            calls[piece.index] = calls[piece.index][0], calls[piece.index][1] + piece.arguments
    return calls


def test_calls_come_beside_the_text_and_end_with_their_own_reason() -> None:
    running = run(make_running(), IDS)
    assert "".join(token.text for token in running.tokens) == "I look it up."
    assert calls_of(running.tokens) == [("f", '{"city": "Zürich"}')] * 2
    assert running.ends == [End(0, "tool_calls", len(IDS))]


def test_an_answer_that_only_calls_has_no_text() -> None:
    running = run(make_running(), list(CALL.encode()))
    assert "".join(token.text for token in running.tokens) == ""


def test_half_a_call_at_the_limit_is_told_as_it_is() -> None:
    running = run(make_running(), IDS[: len(ANSWER.encode()) - 20], finish="length")
    assert calls_of(running.tokens)[-1] == ("f", '{"city": "Zü')
    assert running.ends[0].reason == "length"


def test_a_limit_anywhere_within_a_call_leaves_no_mark_in_the_text() -> None:
    text = list(f"I look.\n{CALL}".encode())
    for end in range(len("I look."), len(text) + 1):
        running = run(make_running(), text[:end], finish="length")
        assert "".join(token.text for token in running.tokens).strip() == "I look.", bytes(text[:end])
        assert running.ends[0].reason == "length"


def test_a_choice_ends_after_the_last_call_that_it_may_have() -> None:
    running = run(make_running(max_calls=1), IDS)
    assert calls_of(running.tokens) == [("f", '{"city": "Zürich"}')]
    assert len(running.tokens) < len(IDS)
    assert running.ends == [End(0, "tool_calls", len(running.tokens))]


def test_a_call_in_the_reasoning_is_no_call() -> None:
    running = run(make_running(reasoning="text"), list(f"<think>{CALL}</think>{CALL}".encode()))
    assert len(calls_of(running.tokens)) == 1


def test_a_stop_string_in_a_call_ends_it() -> None:
    running = run(make_running(stop=("Z",)), IDS)
    assert calls_of(running.tokens) == [("f", '{"city": "')]


@given(st.integers(0, len(IDS) - 1))
def test_a_replay_at_any_token_gives_the_same_stream(cut: int) -> None:
    first = run(make_running(), IDS)
    again = make_running()
    again.replay([Chunk(first=1, epoch=1, tokens=tuple(first.tokens[:cut]))])
    assert run(again, IDS).tokens == first.tokens
    assert again.ends == first.ends


@pytest.mark.parametrize("text", ["no call at all ", "<tool_call>nonsense"])
def test_text_without_a_call_ends_as_ever(text: str) -> None:
    running = run(make_running(), list(text.encode()))
    assert "".join(token.text for token in running.tokens) == text
    assert running.ends[0].reason == "stop"


def test_a_stop_string_within_a_call_is_told_as_a_stop_and_not_as_a_call_to_run() -> None:
    running = run(make_running(stop=("rich",)), IDS)
    assert calls_of(running.tokens) == [("f", '{"city": "Zü')]
    assert running.ends[0].reason == "stop"


def test_a_stop_string_behind_a_whole_call_leaves_the_call_to_be_run() -> None:
    running = run(make_running(stop=("</tool_call>",)), IDS)
    assert running.ends[0].reason == "tool_calls"


def test_half_a_surrogate_pair_in_stored_arguments_stays_text() -> None:
    function = call_message("a", "f", '{"city": "\\ud800"}')["function"]
    assert function == {"name": "f", "arguments": '{"city": "\\ud800"}'}
