"""The text of a turn as attributes: cut to a bound, and none of a turn whose text is kept nowhere."""

import json
from dataclasses import replace

from axon.domain.log.chunk import End, Token
from axon.domain.tracing.content import content_of
from tests.domain.tracing.turns import turn_of


def test_the_text_of_each_choice_is_a_message() -> None:
    turn = replace(turn_of([]), tokens=(Token(0, 1, "a"), Token(1, 2, "b"), Token(0, 3, "c")), ends=(End(0, "stop"),))
    assert str(content_of(turn)["gen_ai.output.messages"]) == (
        '[{"role": "assistant", "parts": [{"type": "text", "content": "ac"}], "finish_reason": "stop"}, '
        '{"role": "assistant", "parts": [{"type": "text", "content": "b"}], "finish_reason": ""}]'
    )


def test_a_long_text_is_cut_off_and_what_is_left_is_whole_json() -> None:
    turn = replace(turn_of([]), tokens=(Token(0, 1, "é" * 100), Token(1, 2, '"' * 16_000), Token(2, 3, "a" * 300)))
    messages = json.loads(str(content_of(turn)["gen_ai.output.messages"]))
    assert [len(each["parts"][0]["content"]) for each in messages] == [84, 16_000, 300]
    long = replace(turn, tokens=(*turn.tokens, Token(3, 4, "a" * 100_000)))
    [last] = json.loads(str(content_of(long)["gen_ai.output.messages"]))
    assert len(last["parts"][0]["content"]) == 16_384


def test_a_turn_whose_text_is_kept_nowhere_has_none() -> None:
    turn = replace(turn_of([]), tokens=(Token(0, 1, "a"),))
    assert content_of(replace(turn, job=replace(turn.job, forget=True))) == {}
