"""The compliance cases that openresponses.org lists, as far as they are of HTTP; its types check every answer.

The cases are written here from that list: their own runner needs bun and is in no registry.
"""

import json
import os
import sys
import urllib.error
import urllib.request

from openresponses_types import types

EVENTS = {
    member.value: kind
    for name, kind in vars(types).items()
    if name.endswith("StreamingEvent")
    for member in kind.model_fields["type"].annotation
}
"""The published type of each event."""


def said(role, content, **more):
    return {"type": "message", "role": role, "content": content, **more}


def post(path, body):
    headers = {"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"}
    asked = urllib.request.Request(os.environ["BASE_URL"] + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def respond(given, **fields):
    """The response, checked."""
    status, text = post("/responses", {"model": "echo", "input": given, **fields})
    assert status == 200, (status, text)
    body = json.loads(text)
    types.ResponseResource.model_validate(body)
    assert body["status"] == "completed", body
    assert body["output"], body
    return body


def stream(given, **fields):
    """The types of a streamed response's events, and the response; all of them checked."""
    status, text = post("/responses", {"model": "echo", "input": given, "stream": True, **fields})
    assert status == 200, (status, text)
    events = []
    for frame in text.strip().split("\n\n"):
        [kind, data] = [line.partition(": ")[2] for line in frame.split("\n")]
        event = json.loads(data)
        assert event["type"] == kind, frame
        EVENTS[kind].model_validate(event)
        events.append(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed", events[-1]
    assert events[-1]["response"]["status"] == "completed"
    return events


def types_of(items):
    return [item["type"] for item in items]


def basic_response():
    body = respond([said("user", "Say hello in exactly 3 words.")])
    assert body["completed_at"] >= body["created_at"]


def assistant_phase():
    history = [said("user", "Hello"), said("assistant", "I look.", phase="commentary")]
    respond([*history, said("assistant", "Found.", phase="final_answer"), said("user", "And now?")])


def streaming_response():
    kinds = types_of(stream([said("user", "Count from 1 to 5.")]))
    assert kinds[:2] == ["response.created", "response.in_progress"], kinds
    assert "response.output_text.delta" in kinds, kinds


def system_prompt():
    respond([said("system", "You are a pirate."), said("user", "Say hello.")])


TOOLS = [
    {
        "type": "function",
        "name": "get_weather",
        "description": "Get the current weather for a location",
        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
    }
]
ASKED = [said("user", "What's the weather like in San Francisco?")]


def tool_calling():
    body = respond(ASKED, tools=TOOLS)
    assert types_of(body["output"]) == ["function_call"], body["output"]
    assert json.loads(body["output"][0]["arguments"]) == {"location": "San Francisco, CA"}


def tool_calling_streaming():
    events = stream(ASKED, tools=TOOLS)
    kinds = types_of(events)
    assert "response.function_call_arguments.delta" in kinds, kinds
    assert "response.function_call_arguments.done" in kinds, kinds
    for kind in ("response.output_item.added", "response.output_item.done"):
        assert [event["item"]["type"] for event in events if event["type"] == kind] == ["function_call"]


def multi_turn():
    respond([said("user", "My name is Alice."), said("assistant", "Hello Alice!"), said("user", "What is my name?")])


def refused(path, body, status, word):
    """What is not there says so: ``word`` is in the error."""
    found, text = post(path, body)
    assert found == status, (found, text)
    assert word in json.loads(text)["error"]["message"], text


def image_input():
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    refused("/responses", {"model": "echo", "input": [said("user", [picture])]}, 400, "input_image")


def compaction_endpoint():
    refused("/responses/compact", {"model": "echo", "input": ASKED}, 405, "does not take POST")


PASSED = (
    *(basic_response, assistant_phase, streaming_response, system_prompt, tool_calling, tool_calling_streaming),
    multi_turn,
)
NOT_THERE = (image_input, compaction_endpoint)
failed = []
for case in (*PASSED, *NOT_THERE):
    try:
        case()
    except Exception as error:
        failed.append(f"{case.__name__}: {error!r}")
if failed:
    sys.exit("\n".join(failed))
print("ok")
