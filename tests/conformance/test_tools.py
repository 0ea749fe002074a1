"""Tool calls, as OpenAI's own client makes and reads them, on an engine that plays the model's part."""

import json
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from tests.journeys.server import Server

WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
BOOK: ChatCompletionToolParam = {
    "type": "function",
    "function": {"name": "book", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
TOOLS = [WEATHER, BOOK]


@pytest.fixture(scope="module")
def client(agent: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{agent.url}/v1", api_key=agent.key, max_retries=0)


def results(calls: Any) -> list[ChatCompletionMessageParam]:
    """What the client's functions return."""
    found = {"get_weather": lambda city: f"{city}: 2{len(city)} degrees", "book": lambda city: f"booked: {city}"}
    return [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": found[call.function.name](**json.loads(call.function.arguments)),
        }
        for call in calls
    ]


def test_an_agent_calls_until_it_can_answer(client: openai.OpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "book the warmer of Paris and Rome"}]
    made: list[list[str]] = []
    for _ in range(4):
        choice = client.chat.completions.create(model="echo", messages=messages, tools=TOOLS).choices[0]
        if choice.finish_reason != "tool_calls":
            break
        calls: Any = choice.message.tool_calls
        made.append([call.function.name + call.function.arguments for call in calls])
        messages += [choice.message.to_dict(), *results(calls)]  # type: ignore[list-item]
    assert choice.message.content == "Rome is booked."
    assert choice.message.tool_calls is None
    assert made == [['get_weather{"city": "Paris"}', 'get_weather{"city": "Rome"}'], ['book{"city": "Rome"}']]
    assert len({call["id"] for message in messages for call in message.get("tool_calls", ())}) == 3  # type: ignore[union-attr,attr-defined]


def test_an_answer_that_only_calls_has_no_content(client: openai.OpenAI) -> None:
    ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": "the weather in Zürich?"}]
    message = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS).choices[0].message
    assert message.content is None
    assert message.tool_calls


def test_the_stream_helper_puts_the_same_calls_together(client: openai.OpenAI) -> None:
    ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": "book the warmer of Paris and Rome"}]
    whole = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS).choices[0]
    with client.chat.completions.stream(model="echo", messages=ask, tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion().choices[0]
    streamed: Any = final.message.tool_calls
    assert final.finish_reason == "tool_calls"
    assert final.message.content == whole.message.content == "I look at both."
    assert [(call.function.name, call.function.arguments) for call in streamed] == [
        ("get_weather", '{"city": "Paris"}'),
        ("get_weather", '{"city": "Rome"}'),
    ]
    assert kinds.count("tool_calls.function.arguments.done") == 2
    assert kinds.count("tool_calls.function.arguments.delta") >= 2


def test_without_parallel_calls_the_answer_ends_with_the_first(client: openai.OpenAI) -> None:
    ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": "book the warmer of Paris and Rome"}]
    made = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS, parallel_tool_calls=False)
    assert len(made.choices[0].message.tool_calls or ()) == 1
    assert made.choices[0].finish_reason == "tool_calls"


def test_with_none_the_model_is_told_of_no_tools(client: openai.OpenAI) -> None:
    ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": "tell me"}]
    told = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS).choices[0].message.content or ""
    made = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS, tool_choice="none").choices[0]
    assert "get_weather" in told
    assert "get_weather" not in (made.message.content or "")


def test_a_broken_call_is_text(client: openai.OpenAI) -> None:
    ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": "a broken call"}]
    choice = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS).choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.content == '<tool_call>\n{"name": get_weather}\n</tool_call> sorry'


def test_half_a_call_ends_with_length(client: openai.OpenAI) -> None:
    ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": "the weather in Zürich?"}]
    choice = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS, max_tokens=60).choices[0]
    assert choice.finish_reason == "length"
    call: Any = (choice.message.tool_calls or [None])[0]
    assert '{"city": "Zürich"}'.startswith(call.function.arguments)
    assert len(call.function.arguments) < len('{"city": "Zürich"}')
