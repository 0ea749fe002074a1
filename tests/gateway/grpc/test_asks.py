"""A message asks for the same as a body of OpenAI's API, or is refused with the name of its own field."""

from typing import Any

import msgspec
import pytest

from axon.errors import InvalidInput, Unsupported
from axon.gateway.directives import CHAT, COMPLETIONS
from axon.gateway.grpc.asks import MAX_IDS, embedding_body, in_our_words, turn_body
from axon.gateway.http.body import parse
from axon.gateway.openai.encoders.embedding_requests import EmbeddingRequest
from axon.gateway.openai.requests import ChatRequest, CompletionRequest
from axon.gateway.vector_directives import EMBEDDINGS
from axon.v1 import axon_pb2 as pb

SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
HELLO = pb.Chat(messages=[pb.Message(role="user", content="hello")])


def body_of(turn: pb.Turn) -> Any:
    return msgspec.json.decode(turn_body(turn))


def test_a_chat_has_its_messages_tools_and_choices() -> None:
    chat = pb.Chat(
        messages=[
            pb.Message(role="user", content="what is it"),
            pb.Message(role="assistant", tool_calls=[pb.ToolCall(id="c1", name="look", arguments="{}")]),
            pb.Message(role="tool", content="a cat", tool_call_id="c1"),
        ],
        tools=[pb.Tool(name="look", description="looks", parameters=SCHEMA, strict=True)],
        function="look",
        parallel_tool_calls=False,
        reasoning_effort="low",
        enable_thinking=False,
    )
    body = turn_body(pb.Turn(model="m", chat=chat, store=True, service_tier="flex"))
    ask = parse(ChatRequest, body, CHAT.refused, CHAT.notes)
    assert (ask.model, ask.stream, ask.store, ask.service_tier) == ("m", True, True, "flex")
    assert [message.role for message in ask.messages] == ["user", "assistant", "tool"]
    assert ask.texts()[1]["tool_calls"]
    assert ask.toolbox.offered[0].name == "look"
    assert ask.toolbox.offered[0].strict
    assert (ask.parallel_tool_calls, ask.reasoning_effort) == (False, "low")
    assert ask.template_options["enable_thinking"] is False


def test_sampling_is_told_as_far_as_it_is_set() -> None:
    assert body_of(pb.Turn(model="m", prompt="a")) == {"model": "m", "stream": True, "prompt": "a"}
    sampling = pb.Sampling(
        max_tokens=5,
        temperature=0.0,
        top_p=0.7,
        top_k=-1,
        min_p=0.1,
        stop=["x"],
        stop_token_ids=[7],
        ignore_eos=False,
        min_tokens=1,
        presence_penalty=-1,
        frequency_penalty=1,
        repetition_penalty=1.1,
        logit_bias={9: 1.5, 3: -2.0},
        choices=2,
        seed=-4,
        logprobs=0,
    )
    body = turn_body(pb.Turn(model="m", prompt="a", sampling=sampling))
    ask = parse(CompletionRequest, body, COMPLETIONS.refused, COMPLETIONS.notes)
    assert (ask.max_tokens, ask.temperature, ask.top_p, ask.top_k, ask.min_p) == (5, 0.0, 0.7, -1, 0.1)
    assert (ask.stop, ask.stop_token_ids, ask.ignore_eos, ask.min_tokens) == (["x"], [7], False, 1)
    assert (ask.presence_penalty, ask.frequency_penalty, ask.repetition_penalty) == (-1, 1, 1.1)
    assert (ask.logit_bias, ask.n, ask.seed, ask.num_logprobs) == ({"3": -2.0, "9": 1.5}, 2, -4, 0)
    chat = parse(ChatRequest, turn_body(pb.Turn(model="m", chat=HELLO, sampling=sampling)), {})
    assert (chat.logprobs, chat.num_logprobs) == (True, 0)


def test_the_same_message_gives_the_same_bytes() -> None:
    bias = dict.fromkeys(range(50), 1.0)
    turns = [
        pb.Turn(model="m", prompt="a", sampling=pb.Sampling(logit_bias=dict(order)))
        for order in (bias.items(), reversed(bias.items()))
    ]
    assert turn_body(turns[0]) == turn_body(turns[1])


@pytest.mark.parametrize(
    ("form", "outputs"),
    [
        (pb.Form(json_object=True), {"json_object": True}),
        (pb.Form(json_schema=SCHEMA), {"json": msgspec.json.decode(SCHEMA)}),
        (pb.Form(regex="a+"), {"regex": "a+"}),
        (pb.Form(choices=pb.Form.Choices(texts=["a", "b"])), {"choice": ["a", "b"]}),
        (pb.Form(grammar="start: A"), {"grammar": "start: A"}),
    ],
)
def test_a_form_is_a_structured_output(form: pb.Form, outputs: Any) -> None:
    body = turn_body(pb.Turn(model="m", prompt="a", form=form))
    assert msgspec.json.decode(body)["structured_outputs"] == outputs
    assert parse(CompletionRequest, body, COMPLETIONS.refused, COMPLETIONS.notes).form is not None


@pytest.mark.parametrize("text", ["{", "{} {}", '{}, "model": "other"', '{"a": 1}]', "", "nan", "{'a': 1}"])
def test_text_that_is_no_json_is_refused_by_its_field(text: str) -> None:
    if text:
        tool = pb.Tool(name="f", parameters=text)
        with pytest.raises(InvalidInput) as refused:
            turn_body(pb.Turn(model="m", chat=pb.Chat(messages=HELLO.messages, tools=[tool])))
        assert (refused.value.param, refused.value.code) == ("chat.tools.0.parameters", "invalid_json")
    with pytest.raises(InvalidInput) as refused:
        turn_body(pb.Turn(model="m", prompt="a", form=pb.Form(json_schema=text)))
    assert (refused.value.param, refused.value.code) == ("form.json_schema", "invalid_json")


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    deep = pb.Form(json_schema='{"a":' * 5000 + "1" + "}" * 5000)
    with pytest.raises(InvalidInput):
        parse(CompletionRequest, turn_body(pb.Turn(model="m", prompt="a", form=deep)), COMPLETIONS.refused)


def test_text_with_a_nul_is_refused() -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        parse(CompletionRequest, turn_body(pb.Turn(model="m", prompt="a\x00b")), {})


def test_a_turn_without_input_or_with_two_choices_of_tools_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        turn_body(pb.Turn(model="m"))
    assert refused.value.code == "missing_required_parameter"
    with pytest.raises(InvalidInput, match="cannot be used together"):
        turn_body(pb.Turn(model="m", chat=pb.Chat(tool_choice="auto", function="f")))


def test_errors_name_the_messages_own_fields() -> None:
    error = in_our_words(Unsupported("'n' is odd.", param="n"))
    assert (type(error), error.message, error.param) == (Unsupported, "'sampling.choices' is odd.", "sampling.choices")
    same = InvalidInput("'temperature' is hot.", param="temperature")
    assert in_our_words(same) is same


def test_too_many_token_ids_are_refused_before_they_become_objects() -> None:
    ids = pb.TokenIds(ids=bytes(MAX_IDS + 1))
    with pytest.raises(InvalidInput, match="too many token ids"):
        turn_body(pb.Turn(model="m", prompt_ids=ids))
    with pytest.raises(InvalidInput, match="too many token ids"):
        embedding_body(pb.EmbedRequest(model="m", token_ids=[ids]))
    few = pb.Turn(model="m", prompt_ids=pb.TokenIds(ids=[5, 6]))
    assert body_of(few)["prompt"] == [5, 6]


def test_embeddings_take_texts_or_token_ids() -> None:
    asked = pb.EmbedRequest(
        model="m", texts=["a", "b"], dimensions=8, truncate_tokens=-1, prompt_name="query", service_tier="flex"
    )
    ask = parse(EmbeddingRequest, embedding_body(asked), EMBEDDINGS.refused, EMBEDDINGS.notes)
    assert (ask.model, ask.inputs(), ask.dimensions, ask.truncate_prompt_tokens) == ("m", ["a", "b"], 8, -1)
    assert (ask.prompt_name, ask.service_tier) == ("query", "flex")
    ids = pb.EmbedRequest(model="m", token_ids=[pb.TokenIds(ids=[1, 2]), pb.TokenIds(ids=[3])])
    assert parse(EmbeddingRequest, embedding_body(ids), {}).inputs() == [[1, 2], [3]]
    for wrong in (pb.EmbedRequest(model="m"), pb.EmbedRequest(texts=["a"], token_ids=[pb.TokenIds(ids=[1])])):
        with pytest.raises(InvalidInput):
            embedding_body(wrong)
