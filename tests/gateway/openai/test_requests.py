"""What OpenAI's request bodies mean: whose default holds, what is refused by name, how prompts and tiers are read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from axon.domain.model.served_version import ServedVersion
from axon.domain.tenants.tenant import Tier
from axon.errors import InvalidInput, Unsupported
from axon.gateway.openai.requests import (
    MAX_CHOICES,
    MAX_SCORED,
    ChatRequest,
    CompletionRequest,
    tier_asked,
)

ADVICE = ServedVersion(
    name="small",
    version="v1",
    max_model_len=2048,
    created=100.0,
    temperature=0.7,
    top_p=0.9,
    top_k=40,
    repetition_penalty=1.15,
)
"""A model whose makers advise something of their own for every setting."""


def chat(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"model": "small", "messages": [{"role": "user", "content": "hi"}], **fields})


def completion(**fields: Any) -> CompletionRequest:
    return CompletionRequest.model_validate({"model": "small", "prompt": "hi", **fields})


def refused(call: Any) -> tuple[str | None, str]:
    """The parameter that is blamed, and the code."""
    with pytest.raises(InvalidInput) as raised:
        call()
    return raised.value.param, raised.value.code


class TestSampling:
    def test_a_request_that_says_nothing_gets_what_the_models_makers_advise(self) -> None:
        sampling = chat().sampling(None, ADVICE)
        assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.7, 0.9, 40)
        assert sampling.repetition_penalty == 1.15
        assert (sampling.max_tokens, sampling.min_tokens, sampling.logprobs) == (0, 0, None)
        assert (sampling.stop, sampling.stop_ids, sampling.logit_bias, sampling.ignore_eos) == ((), (), (), False)

    @given(
        temperature=st.none() | st.floats(0, 2),
        top_p=st.none() | st.floats(0, 1, exclude_min=True),
        top_k=st.none() | st.integers(-1, 1000),
    )
    def test_what_a_request_says_goes_before_the_advice_even_where_it_is_zero(
        self, temperature: float | None, top_p: float | None, top_k: int | None
    ) -> None:
        sampling = chat(temperature=temperature, top_p=top_p, top_k=top_k).sampling(None, ADVICE)
        assert sampling.temperature == (0.7 if temperature is None else temperature)
        assert sampling.top_p == (0.9 if top_p is None else top_p)
        assert sampling.top_k == (40 if top_k is None else max(0, top_k))

    @pytest.mark.parametrize(
        ("fields", "penalty"),
        [
            ({}, 1.15),
            ({"temperature": 0.0}, 1.0),
            ({"temperature": 0.7}, 1.0),
            ({"repetition_penalty": 1.3}, 1.3),
            ({"repetition_penalty": 1.3, "temperature": 1.0}, 1.3),
        ],
    )
    def test_who_names_a_temperature_is_not_given_the_models_own_repetition_penalty(
        self, fields: dict[str, float], penalty: float
    ) -> None:
        assert chat(**fields).sampling(None, ADVICE).repetition_penalty == penalty

    def test_a_token_of_the_bias_is_a_number_and_its_bias_is_kept(self) -> None:
        sampling = chat(logit_bias={"7": -100, "12": 0.5}).sampling(None, ADVICE)
        assert sampling.logit_bias == ((7, -100.0), (12, 0.5))

    @pytest.mark.parametrize(("stop", "found"), [("end", ("end",)), (["a", "b"], ("a", "b")), ([], ()), (None, ())])
    def test_one_stop_text_is_the_same_as_a_list_of_one(self, stop: Any, found: tuple[str, ...]) -> None:
        assert chat(stop=stop).sampling(None, ADVICE).stop == found

    @given(most=st.integers(1, 100), least=st.integers(0, 100))
    def test_the_fewest_tokens_are_never_more_than_the_most(self, most: int, least: int) -> None:
        request = chat(min_tokens=least)
        if least > most:
            assert refused(lambda: request.sampling(most, ADVICE)) == ("min_tokens", "invalid_value")
        else:
            assert request.sampling(most, ADVICE).min_tokens == least
        assert request.sampling(None, ADVICE).min_tokens == least

    def test_only_an_echo_with_log_probabilities_has_its_prompt_scored(self) -> None:
        asked = [completion(), completion(echo=True), completion(logprobs=0), completion(echo=True, logprobs=0)]
        assert [each.sampling(1, ADVICE).prompt_logprobs for each in asked] == [False, False, False, True]

    @given(asked=st.none() | st.integers(0, 20), echo=st.booleans(), logprobs=st.none() | st.integers(0, 20))
    def test_prompts_have_as_many_likely_tokens_as_either_way_of_asking_needs(
        self, asked: int | None, echo: bool, logprobs: int | None
    ) -> None:
        sampling = completion(prompt_logprobs=asked, echo=echo, logprobs=logprobs).sampling(1, ADVICE)
        echoed = logprobs if echo else None
        assert sampling.prompt_logprobs == (asked is not None or echoed is not None)
        assert sampling.prompt_top == (None if asked is None else max(asked, echoed or 0))
        assert sampling.logprobs == logprobs
        talk = chat(prompt_logprobs=asked).sampling(1, ADVICE)
        assert (talk.prompt_logprobs, talk.prompt_top, talk.logprobs) == (asked is not None, asked, None)


@pytest.mark.parametrize(
    ("fields", "num"),
    [({}, None), ({"logprobs": False}, None), ({"logprobs": True}, 0), ({"logprobs": True, "top_logprobs": 5}, 5)],
)
def test_a_chat_asks_for_log_probabilities_by_two_fields(fields: dict[str, Any], num: int | None) -> None:
    assert chat(**fields).num_logprobs == num


def test_likely_tokens_without_log_probabilities_are_refused() -> None:
    assert refused(lambda: chat(top_logprobs=3).num_logprobs) == ("top_logprobs", "invalid_value")
    assert chat(top_logprobs=0).num_logprobs is None


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (None, (False, False)),
        ({"include_usage": True}, (True, False)),
        ({"include_usage": True, "continuous_usage_stats": True}, (True, True)),
        ({"continuous_usage_stats": True}, (False, False)),
    ],
)
def test_usage_in_every_chunk_needs_usage_at_all(options: Any, found: tuple[bool, bool]) -> None:
    request = chat(stream_options=options)
    assert (request.include_usage, request.continuous_usage) == found


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        (None, Tier.DEFAULT),
        ("auto", Tier.DEFAULT),
        ("default", Tier.DEFAULT),
        ("flex", Tier.FLEX),
        ("priority", Tier.PRIORITY),
    ],
)
def test_no_tier_and_auto_are_the_default_one(name: Any, tier: Tier) -> None:
    assert tier_asked(name) is tier
    assert chat(service_tier=name).tier is tier


class TestMessages:
    def test_a_developer_speaks_as_the_system_and_parts_of_text_are_joined(self) -> None:
        request = chat(
            messages=[
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": ""},
            ]
        )
        assert request.texts() == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "ab"},
            {"role": "assistant", "content": ""},
        ]

    @pytest.mark.parametrize(
        ("message", "param", "code"),
        [
            ({"role": "tool", "content": "4"}, "messages.1.tool_call_id", "missing_required_parameter"),
            ({"role": "tool", "content": "4", "tool_call_id": "c"}, "messages.1.tool_call_id", "invalid_value"),
            (
                {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "[1]"}}]},
                "messages.1.tool_calls.0.function.arguments",
                "invalid_value",
            ),
            (
                {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom"}]},
                "messages.1.tool_calls.0.type",
                "unsupported_parameter",
            ),
            ({"role": "function", "content": "4"}, "messages.1.role", "unsupported_parameter"),
            ({"role": "assistant"}, "messages.1.content", "invalid_type"),
            (
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
                "messages.1.content",
                "unsupported_parameter",
            ),
        ],
    )
    def test_a_message_that_cannot_be_read_is_named_by_its_place(
        self, message: dict[str, Any], param: str, code: str
    ) -> None:
        request = chat(messages=[{"role": "user", "content": "hi"}, message])
        assert refused(request.texts) == (param, code)

    def test_what_is_only_unsupported_is_told_apart_from_what_is_wrong(self) -> None:
        with pytest.raises(Unsupported, match="image_url"):
            chat(messages=[{"role": "user", "content": [{"type": "image_url"}]}]).texts()


class TestPrompts:
    @pytest.mark.parametrize(
        ("prompt", "found"),
        [
            ("one", ["one"]),
            (["one", "two"], ["one", "two"]),
            ([1, 2, 3], [[1, 2, 3]]),
            ([[1, 2], [3]], [[1, 2], [3]]),
        ],
    )
    def test_a_list_of_numbers_is_one_prompt_and_a_list_of_lists_several(self, prompt: Any, found: list[Any]) -> None:
        assert completion(prompt=prompt).prompts() == found

    @pytest.mark.parametrize("prompt", ["", [], [""], ["a", ""], [[]], [[1], []]])
    def test_no_prompt_of_a_request_is_empty(self, prompt: Any) -> None:
        assert refused(completion(prompt=prompt).prompts) == ("prompt", "invalid_value")

    @given(num_prompts=st.integers(1, 2 * MAX_CHOICES), n=st.integers(1, MAX_CHOICES))
    def test_prompts_times_answers_are_bounded(self, num_prompts: int, n: int) -> None:
        request = completion(prompt=["a"] * num_prompts, n=n)
        if num_prompts * n > MAX_CHOICES:
            assert refused(request.prompts) == ("prompt", "invalid_value")
        else:
            assert len(request.prompts()) == num_prompts


class TestBestOf:
    @given(n=st.none() | st.integers(1, 8), best_of=st.none() | st.integers(1, 8), stream=st.booleans())
    def test_at_least_as_many_are_made_as_returned_and_none_is_chosen_in_a_stream(
        self, n: int | None, best_of: int | None, stream: bool
    ) -> None:
        request = completion(n=n, best_of=best_of, stream=stream)
        returned, made = n or 1, best_of or n or 1
        assert request.num_choices == made
        if made < returned or (stream and made > returned):
            assert refused(request.check) == ("best_of", "invalid_value")
        else:
            request.check()
            assert request.is_chosen_from == (made > returned)

    def test_to_choose_needs_log_probabilities_that_nobody_asked_for(self) -> None:
        assert completion().num_logprobs is None
        assert completion(best_of=2).num_logprobs == 0
        assert completion(best_of=2, logprobs=3).num_logprobs == 3


def test_no_tokens_at_all_may_be_asked_for_beside_an_echo_only() -> None:
    assert refused(completion(max_tokens=0).check) == ("max_tokens", "invalid_value")
    completion(max_tokens=0, echo=True).check()
    completion(max_tokens=1).check()


@pytest.mark.parametrize(
    ("fields", "num_each"),
    [({}, 1), ({"logprobs": 3}, 4), ({"logprobs": 0, "n": 2}, 2), ({"logprobs": 1, "best_of": 4}, 8)],
)
def test_the_log_probabilities_of_prompts_are_bounded_by_all_that_are_told(
    fields: dict[str, int], num_each: int
) -> None:
    request = completion(echo=True, **{"logprobs": 0, **fields})
    most = MAX_SCORED // num_each
    request.check_scored(most)
    assert refused(lambda: request.check_scored(most + 1)) == ("logprobs", "invalid_value")
    completion(**fields).check_scored(MAX_SCORED + 1)  # nobody scores a prompt that is not echoed


@pytest.mark.parametrize(("fields", "num_each"), [({}, 3), ({"n": 4}, 12), ({"prompt_logprobs": 0}, 1)])
def test_the_log_probabilities_of_a_chats_prompt_are_bounded_too(fields: dict[str, int], num_each: int) -> None:
    for request in (chat(**{"prompt_logprobs": 2, **fields}), completion(**{"prompt_logprobs": 2, **fields})):
        most = MAX_SCORED // num_each
        request.check_scored(most)
        assert refused(lambda: request.check_scored(most + 1)) == ("prompt_logprobs", "invalid_value")  # noqa: B023
    chat().check_scored(MAX_SCORED + 1)


@pytest.mark.parametrize("make", [chat, completion])
def test_a_stream_has_no_log_probabilities_of_its_prompt_in_vllms_shape(make: Any) -> None:
    assert refused(make(prompt_logprobs=0, stream=True).check) == ("prompt_logprobs", "invalid_value")
    make(prompt_logprobs=0, stream=False).check()
    make(stream=True).check()


@pytest.mark.parametrize("number", [-1, 21, 1.5, "two"])
def test_a_number_of_likely_tokens_that_cannot_be_is_refused(number: object) -> None:
    with pytest.raises(ValidationError):
        chat(prompt_logprobs=number)
