"""What a LiteLLM program does that needs an answer in a form: a call it names, one it requires, a schema."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would look for prices on the internet first

import litellm

common = {"api_base": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "max_retries": 0, "max_tokens": 200}
common["model"] = f"openai/{os.environ['MODEL']}"
schema = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "days": {"type": "integer", "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
messages = [{"role": "user", "content": "I want to see the Colosseum for 3 days."}]


def tool(name, strict):
    return {"type": "function", "function": {"name": name, "parameters": schema, "strict": strict}}


def right(text):
    found = json.loads(text)
    return set(found) == {"city", "days"} and found["city"] in ("Paris", "Rome") and isinstance(found["days"], int)


named = {"type": "function", "function": {"name": "book"}}
for strict, choice, names in ((False, named, {"book"}), (True, "required", {"book", "plan"})):
    offered = [tool("book", strict), tool("plan", strict)]
    asked = {**common, "messages": messages, "tools": offered, "tool_choice": choice, "parallel_tool_calls": False}
    [call] = litellm.completion(**asked).choices[0].message.tool_calls
    assert call.function.name in names, call
    assert right(call.function.arguments), call

form = {"type": "json_schema", "json_schema": {"name": "journey", "schema": schema, "strict": True}}
answer = litellm.completion(**common, messages=messages, response_format=form).choices[0].message.content
assert right(answer), answer
print("ok")
