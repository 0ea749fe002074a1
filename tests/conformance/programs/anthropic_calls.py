"""What a program of Anthropic's client does that needs a call: one that it names, and any of several."""

import os

import anthropic

client = anthropic.Anthropic(
    base_url=os.environ["BASE_URL"].removesuffix("/v1"), api_key=os.environ["API_KEY"], max_retries=0
)
schema = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "days": {"type": "integer", "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
messages = [{"role": "user", "content": "I want to see the Colosseum for 3 days."}]
common = {"model": os.environ["MODEL"], "max_tokens": 200, "messages": messages}
named = {"type": "tool", "name": "book", "disable_parallel_tool_use": True}
some = {"type": "any", "disable_parallel_tool_use": True}
for is_strict, choice, names in (
    (False, named, {"book"}),
    (False, some, {"book", "plan"}),
    (True, some, {"book", "plan"}),
):
    tools = [{"name": name, "input_schema": schema, "strict": is_strict} for name in ("book", "plan")]
    whole = client.messages.create(**common, tools=tools, tool_choice=choice)
    with client.messages.stream(**common, tools=tools, tool_choice=choice) as stream:
        streamed = stream.get_final_message()
    for message in (whole, streamed):
        assert message.stop_reason == "tool_use", message
        [block] = message.content
        assert block.name in names, block
        assert set(block.input) == {"city", "days"}, block
        assert block.input["city"] in ("Paris", "Rome"), block
        assert isinstance(block.input["days"], int), block
print("ok")
