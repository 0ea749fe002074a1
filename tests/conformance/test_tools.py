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
    assert made == [['get_weather{"city":"Paris"}', 'get_weather{"city":"Rome"}'], ['book{"city":"Rome"}']]
    assert len({call["id"] for message in messages for call in message.get("tool_calls", ())}) == 3  # type: ignore[attr-defined]


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
        ("get_weather", '{"city":"Paris"}'),
        ("get_weather", '{"city":"Rome"}'),
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
    choice = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS, max_tokens=59).choices[0]
    assert choice.finish_reason == "length"
    calls: Any = choice.message.tool_calls
    [call] = calls
    assert '{"city":"Zürich"}'.startswith(call.function.arguments)
    assert len(call.function.arguments) < len('{"city":"Zürich"}')


FLAT: list[Any] = [{"type": "function", **tool["function"]} for tool in TOOLS]


def outputs(response: Any) -> list[Any]:
    """What the functions return to a response's calls."""
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": f"{item.name} {item.arguments}" if item.name != "book" else "booked: Rome",
        }
        for item in response.output
        if item.type == "function_call"
    ]


@pytest.mark.parametrize("kept", ["previous", "conversation", "client"])
def test_a_response_goes_on_from_the_results_of_its_calls(client: openai.OpenAI, kept: str) -> None:
    given: list[Any] = [{"role": "user", "content": "book the warmer of Paris and Rome"}]
    where: dict[str, Any] = {"conversation": client.conversations.create().id} if kept == "conversation" else {}
    history: list[Any] = []
    kinds = []
    for _ in range(4):
        history += given
        response = client.responses.create(
            model="echo", input=history if kept == "client" else given, tools=FLAT, store=kept != "client", **where
        )
        kinds.append([item.type for item in response.output])
        history += [item.to_dict() for item in response.output]
        given = outputs(response)
        if not given:
            break
        if kept == "previous":
            where = {"previous_response_id": response.id}
    assert response.output_text == "Rome is booked."
    assert kinds == [["message", "function_call", "function_call"], ["message", "function_call"], ["message"]]
    assert [tool.to_dict()["name"] for tool in response.tools] == ["get_weather", "book"]
    if kept == "conversation":
        listed = client.conversations.items.list(where["conversation"], order="asc", limit=20).data
        assert [item.type for item in listed] == [
            *("message", "message", "function_call", "function_call"),
            *("function_call_output", "function_call_output", "message", "function_call", "function_call_output"),
            "message",
        ]
    if kept == "previous":
        items = client.responses.input_items.list(response.id).data
        assert [item.type for item in items] == ["function_call_output"]


def test_a_streamed_response_is_the_stored_one_and_can_be_resumed(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "echo", "input": "book the warmer of Paris and Rome", "tools": FLAT}
    with client.responses.stream(**asked) as stream:
        events = list(stream)
        final = stream.get_final_response()
    stored = client.responses.retrieve(final.id)
    assert [item.to_dict()["id"] for item in stored.output] == [item.to_dict()["id"] for item in final.output]
    assert final.output_text == stored.output_text == "I look at both."
    arguments = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [event.arguments for event in arguments] == ['{"city":"Paris"}', '{"city":"Rome"}']
    middle = arguments[0].sequence_number
    rest = list(client.responses.retrieve(final.id, stream=True, starting_after=middle))
    assert [event.sequence_number for event in rest] == list(range(middle + 1, middle + 1 + len(rest)))
    assert rest[-1].type == "response.completed"


def test_a_function_of_a_namespace_is_called_and_answered(client: openai.OpenAI) -> None:
    look_up = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
    tools: Any = [{"type": "namespace", "name": "crm", "description": "Customers.", "tools": [look_up]}]
    asked: dict[str, Any] = {"model": "echo", "tools": tools}
    with client.responses.stream(**asked, input="who is customer 7?") as stream:
        first = stream.get_final_response()
    call: Any = client.responses.retrieve(first.id).output[0]
    for each in (first.output[0], call):
        told = each.to_dict()
        assert (told["type"], told["namespace"], told["name"]) == ("function_call", "crm", "look_up")
        assert told["arguments"] == '{"number":7}'
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "Ada"}
    kept = client.responses.create(**asked, input=[result], previous_response_id=first.id)
    history: Any = [{"role": "user", "content": "who is customer 7?"}, call.to_dict(), result]
    sent = client.responses.create(**asked, input=history, store=False)
    assert kept.output_text == sent.output_text == "Customer 7 is Ada."
    assert kept.usage is not None
    assert sent.usage is not None
    assert kept.usage.input_tokens == sent.usage.input_tokens


def test_a_stored_chat_shows_its_calls(client: openai.OpenAI) -> None:
    ask: list[ChatCompletionMessageParam] = [{"role": "user", "content": "the weather in Zürich?"}]
    made = client.chat.completions.create(model="echo", messages=ask, tools=TOOLS, store=True)
    again = client.chat.completions.retrieve(made.id)
    assert again.choices[0].message == made.choices[0].message


def test_input_tokens_are_counted_with_the_tools(client: openai.OpenAI) -> None:
    bare = client.responses.input_tokens.count(model="echo", input="hello").input_tokens
    assert client.responses.input_tokens.count(model="echo", input="hello", tools=FLAT).input_tokens > bare + 100


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tools": [TOOLS[0], TOOLS[0]]}, "tools.1.function.name"),
    ({"tools": [TOOLS[0]] * 129}, "tools"),
    ({"tools": [{"type": "function", "function": {"name": "no spaces"}}]}, "tools.0.function.name"),
    ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0.type"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "fly"}}}, "tool_choice.function.name"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"functions": [{"name": "f"}]}, "functions"),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "description": "x" * (1 << 19), "parameters": {}}}]},
        "tools",
    ),
]


@pytest.mark.parametrize(("more", "param"), REFUSED)
def test_wrong_tools_are_refused_by_their_place(client: openai.OpenAI, more: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model="echo", messages=[{"role": "user", "content": "hi"}], **more)
    assert raised.value.param == param


@pytest.mark.parametrize("kind", ["web_search", "file_search", "mcp", "code_interpreter", "custom", "local_shell"])
def test_built_in_tools_are_refused_by_name(client: openai.OpenAI, kind: str) -> None:
    tool: Any = {"type": kind}
    with pytest.raises(openai.BadRequestError, match=f"Tools of type '{kind}' are not supported") as raised:
        client.responses.create(model="echo", input="hi", tools=[tool])
    assert raised.value.param == "tools.0.type"


def test_a_result_without_its_call_is_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="No tool call found"):
        client.responses.create(
            model="echo", input=[{"type": "function_call_output", "call_id": "call_9", "output": "42"}]
        )
