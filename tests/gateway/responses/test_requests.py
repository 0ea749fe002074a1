"""What a body of the Responses API means: which fields go together, whose default holds, what is not done yet."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.model.served_version import ServedVersion
from axon.domain.tenants.tenant import Tier
from axon.errors import InvalidInput
from axon.gateway.directives import RESPONSES
from axon.gateway.http.body import parse
from axon.gateway.responses.requests import LOGPROBS, MetadataRequest, ResponseRequest

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


def read(**fields: Any) -> ResponseRequest:
    body = {"model": "small", "input": "hi", **fields}
    return parse(ResponseRequest, json.dumps(body).encode(), RESPONSES.refused)


def refused(call: Any) -> tuple[str | None, str]:
    with pytest.raises(InvalidInput) as raised:
        call()
    return raised.value.param, raised.value.code


class TestTogether:
    def test_a_response_goes_on_from_a_turn_or_stands_in_a_conversation_and_never_both(self) -> None:
        read(previous_response_id="resp_1").check()
        read(conversation="conv_1").check()
        both = read(previous_response_id="resp_1", conversation={"id": "conv_1"})
        assert refused(both.check) == ("previous_response_id", "mutually_exclusive_parameters")

    def test_a_conversation_is_named_or_begun(self) -> None:
        begun = read(conversation={"metadata": {"title": "x"}})
        begun.check()
        assert (begun.conversation_id, begun.begins) == ("", {"title": "x"})
        named = read(conversation={"id": "conv_1", "metadata": {"title": "x"}})
        assert (named.conversation_id, named.begins) == ("conv_1", None)
        assert refused(named.check) == ("conversation.metadata", "mutually_exclusive_parameters")
        both = read(previous_response_id="resp_1", conversation={"metadata": {}})
        assert refused(both.check) == ("previous_response_id", "mutually_exclusive_parameters")
        assert refused(read(store=False, conversation={"metadata": {}}).check)[0] == "store"
        assert (
            refused(lambda: read(conversation={"metadata": {"title": "x" * 513}}))[0] == "conversation.metadata.title"
        )
        for nothing in ({}, "", {"id": ""}, {"id": "", "metadata": {"title": "x"}}):
            assert refused(read(conversation=nothing).check) == ("conversation.id", "missing_required_parameter")

    @pytest.mark.parametrize("nothing", [None, "", []])
    def test_only_what_goes_on_from_something_may_have_no_input(self, nothing: Any) -> None:
        assert refused(read(input=nothing).check) == ("input", "missing_required_parameter")
        read(input=nothing, previous_response_id="resp_1").check()
        read(input=nothing, conversation="conv_1").check()

    @given(store=st.sampled_from([None, True, False]), background=st.booleans(), in_conversation=st.booleans())
    def test_what_is_read_later_or_belongs_to_a_conversation_is_stored(
        self, store: bool | None, background: bool, in_conversation: bool
    ) -> None:
        where = {"conversation": "conv_1"} if in_conversation else {}
        request = read(store=store, background=background, **where)
        assert request.stored == (store is not False)
        if store is False and (background or in_conversation):
            assert refused(request.check) == ("store", "invalid_value")
        else:
            request.check()

    @pytest.mark.parametrize("text", [None, {}, {"format": None}, {"format": {}}, {"format": {"type": "text"}}])
    def test_a_format_of_text_asks_for_nothing(self, text: Any) -> None:
        assert read(text=text).form is None

    def test_a_format_of_json_names_its_schema(self) -> None:
        schema = {"type": "object"}
        form = read(text={"format": {"type": "json_schema", "name": "a", "schema": schema}}).form
        assert form is not None
        assert (form.kind, form.value, form.param) == ("json", schema, "text.format.schema")
        assert refused(lambda: read(text={"format": {"type": "json_schema"}}).form) == (
            "text.format.name",
            "missing_required_parameter",
        )


@pytest.mark.parametrize(("given", "found"), [(None, ""), ("conv_1", "conv_1"), ({"id": "conv_1"}, "conv_1")])
def test_a_conversation_is_named_bare_or_in_an_object(given: Any, found: str) -> None:
    assert read(conversation=given).conversation_id == found


class TestSampling:
    def test_a_request_that_says_nothing_gets_what_the_models_makers_advise(self) -> None:
        sampling = read().sampling(ADVICE)
        assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.7, 0.9, 40)
        assert (sampling.repetition_penalty, sampling.max_tokens, sampling.logprobs) == (1.15, 0, None)

    @given(temperature=st.floats(0, 2), top_p=st.floats(0, 1, exclude_min=True), most=st.integers(1, 1 << 31))
    def test_what_a_request_says_goes_before_it(self, temperature: float, top_p: float, most: int) -> None:
        sampling = read(temperature=temperature, top_p=top_p, max_output_tokens=most).sampling(ADVICE)
        assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (temperature, top_p, most)
        assert sampling.repetition_penalty == 1.0

    @pytest.mark.parametrize(
        ("fields", "num"),
        [
            ({}, None),
            ({"include": []}, None),
            ({"include": [LOGPROBS]}, 0),
            ({"top_logprobs": 0}, None),
            ({"top_logprobs": 4}, 4),
            ({"top_logprobs": 4, "include": [LOGPROBS]}, 4),
        ],
    )
    def test_log_probabilities_are_asked_for_in_two_ways(self, fields: dict[str, Any], num: int | None) -> None:
        assert read(**fields).sampling(ADVICE).logprobs == num


def test_a_tier_is_read_as_in_a_chat() -> None:
    assert [read(service_tier=name).tier for name in (None, "auto", "flex", "priority")] == [
        Tier.DEFAULT,
        Tier.DEFAULT,
        Tier.FLEX,
        Tier.PRIORITY,
    ]


@pytest.mark.parametrize(
    ("field", "neutral", "asked"),
    [
        ("max_tool_calls", None, 3),
        ("messages", None, [{"role": "user", "content": "hi"}]),
        ("n", 1, 2),
        ("stop", [], ["end"]),
    ],
)
def test_a_field_that_is_not_done_yet_is_refused_by_name_unless_it_asks_for_nothing(
    field: str, neutral: Any, asked: Any
) -> None:
    read(**{field: neutral})
    assert refused(lambda: read(**{field: asked})) == (field, "unsupported_parameter")


def test_what_codex_always_sends_is_no_error() -> None:
    asked = read(
        reasoning={"effort": "high", "summary": "auto"},
        include=["reasoning.encrypted_content"],
        text={"verbosity": "low"},
        parallel_tool_calls=False,
        prompt_cache_key="thread",
        client_metadata={"a": "b"},
    )
    assert asked.template_options == {"reasoning_effort": "high"}
    assert asked.num_logprobs is None


def test_an_unknown_value_of_include_is_refused() -> None:
    assert refused(lambda: read(include=["something.else"]))[0] == "include.0"


@pytest.mark.parametrize(
    "metadata",
    [{f"name {number}": "" for number in range(17)}, {"n" * 65: ""}, {"name": "v" * 513}, {"name": 1}],
    ids=["too many", "a long name", "a long value", "no text"],
)
def test_metadata_is_bounded(metadata: dict[str, Any]) -> None:
    most = {"n" * 63 + chr(ord("a") + number): "v" * 512 for number in range(16)}
    body = json.dumps({"metadata": most}).encode()
    assert parse(MetadataRequest, body, {}).metadata == most
    param, _ = refused(lambda: read(metadata=metadata))
    assert param is not None
    assert param.startswith("metadata")
