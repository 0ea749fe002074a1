"""What vLLM returns, as the protocol's messages."""

import math
from types import SimpleNamespace
from typing import Any

from axon.engine.protocol.messages import Emitted
from axon.engine.vllm.outputs import emitted_of, refusal_of, scored_of
from tests.engine.builders import make_add


def likely(**ranked: tuple[float, int]) -> dict[int, Any]:
    return {int(name[1:]): SimpleNamespace(logprob=value, rank=rank) for name, (value, rank) in ranked.items()}


def output(tokens: list[int], *, finish: str | None = None, logprobs: Any = None, prompt: Any = None) -> Any:
    completion = SimpleNamespace(token_ids=tokens, logprobs=logprobs, finish_reason=finish)
    return SimpleNamespace(request_id="a", outputs=[completion], prompt_logprobs=prompt, num_cached_tokens=64)


def test_only_the_last_of_several_tokens_ends_and_only_the_first_of_all_says_what_was_cached() -> None:
    add = make_add(prompt=80)
    assert emitted_of(output([5, 6], finish="stop"), add, is_first=True) == [
        Emitted("a", 5, cached=64),
        Emitted("a", 6, "stop"),
    ]
    assert emitted_of(output([7]), add, is_first=False) == [Emitted("a", 7)]


def test_cached_tokens_of_a_replay_are_no_more_than_its_prompt_has() -> None:
    assert emitted_of(output([5]), make_add(prompt=10), is_first=True)[0].cached == 10


def test_the_most_likely_come_in_order_and_an_unlikely_chosen_one_is_not_among_them() -> None:
    rows = [likely(_9=(-4.0, 8), _2=(-0.5, 2), _3=(-0.25, 1))]
    (emitted,) = emitted_of(output([9], logprobs=rows), make_add(logprobs=2), is_first=False)
    assert emitted.logprob == -4.0
    assert emitted.top == [(3, -0.25), (2, -0.5)]
    (without,) = emitted_of(output([9], logprobs=rows), make_add(logprobs=0), is_first=False)
    assert (without.logprob, without.top) == (-4.0, [])


def test_a_prompt_is_scored_from_its_second_token_on() -> None:
    prompt = [None, likely(_2=(-1.0, 3), _8=(-0.1, 1)), likely(_3=(-math.inf, 200), _8=(-0.1, 1))]
    scored = scored_of(output([5], prompt=prompt), make_add(prompt=[1, 2, 3], prompt_logprobs=True, prompt_top=1))
    assert scored is not None
    assert scored.logprobs == [(-1.0, 3, [(8, -0.1)]), (-9999.0, 200, [(8, -0.1)])]
    assert scored_of(output([5]), make_add()) is None


def test_a_sequence_that_vllm_gave_up_is_refused_with_its_word() -> None:
    refused = refusal_of(output([], finish="error"), make_add())
    assert refused is not None
    assert "error" in refused.message
    for finish in (None, "stop", "length"):
        assert refusal_of(output([5], finish=finish), make_add()) is None
