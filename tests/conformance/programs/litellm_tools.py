"""What a LiteLLM program does with tools: call, stream, send results."""

import json
import os

import litellm

common = {
    "model": "openai/echo",
    "api_base": os.environ["BASE_URL"],
    "api_key": os.environ["API_KEY"],
    "max_retries": 0,
}
city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": name, "parameters": city}} for name in ("get_weather", "book")]
messages = [{"role": "user", "content": "the weather in Zürich?"}]

answer = litellm.completion(**common, messages=messages, tools=tools).choices[0]
assert answer.finish_reason == "tool_calls", answer
[call] = answer.message.tool_calls
assert json.loads(call.function.arguments) == {"city": "Zürich"}, call

chunks = list(litellm.completion(**common, messages=messages, tools=tools, stream=True))
built = litellm.stream_chunk_builder(chunks, messages=messages).choices[0]
assert built.message.tool_calls[0].function.arguments == call.function.arguments, built

messages += [answer.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
assert (
    litellm.completion(**common, messages=messages, tools=tools).choices[0].message.content == "It is sunny in Zürich."
)
print("ok")
