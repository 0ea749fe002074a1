"""What a program of Anthropic's client does: ask, stream, use tools until an answer comes, parse, count, be refused."""

import asyncio
import json
import os
import sys

import anthropic
import pydantic

base_url = os.environ["BASE_URL"].removesuffix("/v1")
client = anthropic.Anthropic(base_url=base_url, api_key=os.environ["API_KEY"], max_retries=0)
user = {"role": "user", "content": "What is the capital of France?"}
ask = {"model": "echo", "max_tokens": 200, "messages": [user], "system": "You repeat."}
ask["extra_body"] = {"temperature": 0}  # newer releases of the client have no argument for it

whole = client.messages.create(**ask)
assert (whole.type, whole.role, whole.stop_reason) == ("message", "assistant", "end_turn"), whole
assert "What is the capital of France?" in whole.content[0].text, whole
assert whole._request_id.startswith("req_"), whole._request_id

with client.messages.stream(**ask) as stream:
    said = "".join(stream.text_stream)
    final = stream.get_final_message()
assert said == final.content[0].text == whole.content[0].text
assert final.usage.output_tokens == whole.usage.output_tokens > 0, final
assert final.id.startswith("msg_"), final

kinds = [event.type for event in client.messages.create(**ask, stream=True)]
assert kinds[:2] == ["message_start", "content_block_start"], kinds
assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"], kinds

stopped = client.messages.create(**ask, stop_sequences=["capital"])
assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "capital"), stopped
short = client.messages.create(**{**ask, "max_tokens": 3})
assert (short.stop_reason, short.usage.output_tokens) == ("max_tokens", 3), short

counter = getattr(client.messages, "count_tokens", None) or client.beta.messages.count_tokens
counted = counter(model="echo", messages=[user], system="You repeat.").input_tokens
assert counted == whole.usage.input_tokens + whole.usage.cache_read_input_tokens, (counted, whole.usage)


tools = [
    {
        "name": "get_weather",
        "description": "Says how the weather is.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]


def loop(is_streamed):
    """Uses tools as the model asks for it, until it answers; returns what it used and the answer."""
    messages = [{"role": "user", "content": "How is the weather in Bonn and in Rome?"}]
    used = []
    for _ in range(5):
        request = {"model": "echo", "max_tokens": 500, "messages": messages, "tools": tools}
        if is_streamed:
            with client.messages.stream(**request) as stream:
                message = stream.get_final_message()
        else:
            message = client.messages.create(**request)
        if message.stop_reason != "tool_use":
            return used, message.content[-1].text
        results = []
        for block in message.content:
            if block.type == "tool_use":
                used.append((block.name, block.input))
                results.append(
                    {"type": "tool_result", "tool_use_id": block.id, "content": f"sunny in {block.input['city']}"}
                )
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    return sys.exit("the loop has no end")


for is_streamed in (False, True):
    used, answer = loop(is_streamed)
    assert used == [("get_weather", {"city": "Bonn"}), ("get_weather", {"city": "Rome"})], used
    assert answer == "Sunny in both.", answer


weather_schema = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
strict_tool = {**tools[0], "strict": True, "input_schema": {**tools[0]["input_schema"], "additionalProperties": False}}
request = {"model": "echo", "max_tokens": 500, "messages": [{"role": "user", "content": "the weather in Bern as JSON"}]}
both = {"tools": [strict_tool], "output_config": {"format": {"type": "json_schema", "schema": weather_schema}}}
first = client.messages.create(**request, extra_body=both)
[used] = first.content
assert (first.stop_reason, used.name, used.input) == ("tool_use", "get_weather", {"city": "Bern"}), first
result = {"type": "tool_result", "tool_use_id": used.id, "content": "sunny in Bern"}
asked = [*request["messages"], {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
second = client.messages.create(**{**request, "messages": asked}, extra_body=both)
assert json.loads(second.content[0].text) == {"city": "Bern", "degrees": 24}, second
forced = client.messages.create(**{**request, "tool_choice": {"type": "any"}}, tools=[strict_tool])
assert [block.input for block in forced.content] == [{"city": "Bern"}], forced

if hasattr(client.messages, "parse"):  # a newer release

    class Weather(pydantic.BaseModel):
        city: str
        degrees: int

    parsed = client.messages.parse(**{**request, "messages": asked}, tools=[strict_tool], output_format=Weather)
    assert parsed.parsed_output == Weather(city="Bern", degrees=24), parsed
    free = client.messages.parse(**ask, output_format=Weather)
    assert isinstance(free.parsed_output, Weather), free


async def at_once():
    async with anthropic.AsyncAnthropic(base_url=base_url, api_key=os.environ["API_KEY"]) as api:
        answers = await asyncio.gather(*(api.messages.create(**ask) for _ in range(4)))
        async with api.messages.stream(**ask) as stream:
            return [each.content[0].text for each in answers], await stream.get_final_text()


together, streamed = asyncio.run(at_once())
assert set(together) == {streamed} == {whole.content[0].text}


def refused(kind, key=os.environ["API_KEY"], **fields):
    """The words of the error that a request gets."""
    asking = anthropic.Anthropic(base_url=base_url, api_key=key, max_retries=0)
    try:
        asking.messages.create(**{**ask, **fields})
    except kind as error:
        body, request_id = error.body, error.response.headers["request-id"]
    else:
        sys.exit(f"no {kind.__name__} for {fields}")
    assert (body["type"], body["request_id"]) == ("error", request_id), body
    return body["error"]["message"]


assert "nobody" in refused(anthropic.NotFoundError, model="nobody")
assert "prompt is too long" in refused(anthropic.BadRequestError, messages=[{"role": "user", "content": "x" * 100_000}])
assert "exceed context limit" in refused(anthropic.BadRequestError, max_tokens=9_000)
assert "web_search_20250305" in refused(
    anthropic.BadRequestError, tools=[{"type": "web_search_20250305", "name": "web_search"}]
)
refused(anthropic.AuthenticationError, key="axk_wrong")

print("ok")
