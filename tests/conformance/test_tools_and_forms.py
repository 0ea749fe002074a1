"""Tools together with a schema, as agents with an output type send them: calls first, then an answer of the schema."""

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.journeys.server import Server


class GetWeather(BaseModel):
    """The weather of a city."""

    city: str


class Weather(BaseModel):
    """What is asked for."""

    city: str
    degrees: int


ASK: list[Any] = [{"role": "user", "content": "the weather in Bern"}]
TOOL = openai.pydantic_function_tool(GetWeather, name="get_weather")
FLAT: Any = {"type": "function", **TOOL["function"]}


@pytest.fixture(scope="module")
def client(agent: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{agent.url}/v1", api_key=agent.key, max_retries=0)


def test_a_chat_calls_and_then_answers_by_the_schema(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "echo", "tools": [TOOL], "response_format": Weather}
    first = client.chat.completions.parse(messages=ASK, **asked).choices[0]
    assert (first.finish_reason, first.message.content) == ("tool_calls", None)
    calls: Any = first.message.tool_calls
    assert [call.function.parsed_arguments for call in calls] == [GetWeather(city="Bern")]
    message: Any = {"role": "assistant", "tool_calls": [call.to_dict() for call in calls]}
    result: Any = {"role": "tool", "tool_call_id": calls[0].id, "content": "24 degrees"}
    second = client.chat.completions.parse(messages=[*ASK, message, result], **asked).choices[0]
    assert second.message.parsed == Weather(city="Bern", degrees=24)
    assert second.message.tool_calls is None
    with client.chat.completions.stream(messages=[*ASK, message, result], **asked) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == Weather(city="Bern", degrees=24)


def test_a_response_calls_and_then_answers_by_the_schema(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "echo", "tools": [FLAT], "text_format": Weather}
    first = client.responses.parse(input="the weather in Bern", **asked)
    [call] = first.output
    assert call.type == "function_call"
    assert first.output_parsed is None
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "24 degrees"}
    second = client.responses.parse(input=[result], previous_response_id=first.id, **asked)
    assert second.output_parsed == Weather(city="Bern", degrees=24)


def test_what_the_model_says_beside_a_schema_is_bound_whatever_it_would_say(client: openai.OpenAI) -> None:
    ask: list[Any] = [{"role": "user", "content": "only words"}]
    chosen = client.chat.completions.parse(
        model="echo", messages=ask, tools=[TOOL], response_format=Weather, max_tokens=400
    ).choices[0]
    assert chosen.message.parsed or chosen.message.tool_calls


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_a_required_call_comes_before_the_schema(client: openai.OpenAI, choice: Any) -> None:
    asked: dict[str, Any] = {"model": "echo", "tools": [TOOL], "response_format": Weather, "tool_choice": choice}
    ask: list[Any] = [{"role": "user", "content": "the weather in Bern"}, {"role": "assistant", "content": "Hm."}]
    made = client.chat.completions.parse(messages=ask, **asked).choices[0]
    assert made.finish_reason == "tool_calls"
    assert made.message.content is None


def test_with_none_the_answer_has_the_schema(client: openai.OpenAI) -> None:
    ask: list[Any] = [{"role": "user", "content": "tell me"}]
    made = client.chat.completions.parse(
        model="echo", messages=ask, tools=[TOOL], response_format=Weather, tool_choice="none", max_tokens=400
    ).choices[0]
    assert made.message.parsed is not None


def test_a_bad_schema_beside_tools_is_refused_by_its_name(client: openai.OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}
    for choice in ("auto", "required"):
        with pytest.raises(openai.BadRequestError) as raised:
            client.chat.completions.create(
                model="echo",
                messages=ASK,
                tools=[TOOL],
                response_format=form,
                tool_choice=choice,
            )
        assert raised.value.param == "response_format.json_schema.schema"
