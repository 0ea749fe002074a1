"""What an agent on LiteLLM does: offer tools, run the calls, send their results, until an answer comes."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would look for prices on the internet first

import litellm

common = {"api_base": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "max_retries": 0}
city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": name, "parameters": city}} for name in ("get_weather", "book")]
results = {"get_weather": lambda city: f"{city}: 2{len(city)} degrees", "book": lambda city: f"booked: {city}"}


def ask(model, messages, is_streamed):
    """The answer, put together from chunks if it is streamed."""
    asked = {**common, "model": model, "messages": messages, "tools": tools}
    if not is_streamed:
        return litellm.completion(**asked)
    return litellm.stream_chunk_builder(list(litellm.completion(**asked, stream=True)), messages=messages)


for model, is_streamed in (("openai/echo", False), ("openai/echo", True), ("hosted_vllm/echo", False)):
    messages = [{"role": "user", "content": "book the warmer of Paris and Rome"}]
    made = []
    for _ in range(4):
        message = ask(model, messages, is_streamed).choices[0].message
        if not message.tool_calls:
            break
        messages.append(message.model_dump())
        for call in message.tool_calls:
            made.append(call.function.name)
            result = results[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    assert message.content == "Rome is booked.", message
    assert made == ["get_weather", "get_weather", "book"], made

given = [{"role": "user", "content": "How is the weather in Zürich?"}]
claude = {**common, "api_base": os.environ["BASE_URL"].removesuffix("/v1"), "model": "anthropic/echo"}
block = litellm.completion(**claude, messages=given, tools=tools, max_tokens=500).choices[0]
assert block.finish_reason == "tool_calls", block
assert json.loads(block.message.tool_calls[0].function.arguments) == {"city": "Zürich"}, block
print("ok")
