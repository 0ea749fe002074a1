"""Constrained answers whose client half leaves or cancels, and requests with more tools or levels than there may be."""

import json
import re
import socket
from typing import Any

import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, wait_until
from tests.journeys.sse import pieces, text_of
from tests.journeys.test_cancel import billed, running, sent

FORM = "[ab]{300}"
SAID: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
CHAT: dict[str, Any] = {"model": "echo", "messages": SAID, "max_tokens": 2000}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 600, "maxLength": 600, "pattern": "^[a-z]*$"}},
    "required": ["text"],
    "additionalProperties": False,
}
FUNCTION = {"name": "write", "parameters": PARAMETERS, "strict": True}
REQUIRED = {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "required"}
FLAT = {"tools": [{"type": "function", **FUNCTION}], "tool_choice": "required"}


def events_of(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line[6:]) if line.startswith("data: {") else {}
    return found


def test_a_stream_whose_client_half_closes_is_read_to_its_end_elsewhere_and_keeps_its_form(slow: Server) -> None:
    body = {**CHAT, "structured_outputs": {"regex": FORM}, "stream": True}
    with sent(slow, body) as line:
        got = line.recv(1 << 16)
        while b"data: " not in got:
            got += line.recv(1 << 16)
        line.shutdown(socket.SHUT_WR)
        while more := line.recv(1 << 16):  # to the end, or until the server hangs up: no connection stays open
            got += more
    found = re.search(rb"x-axon-stream: (\S+)", got)
    assert found
    with slow.client() as http, http.stream("GET", f"/v1/streams/{found[1].decode()}?after=0") as reply:
        stream = list(pieces(reply.iter_lines()))
    assert stream[-1].finish == "stop"
    assert re.fullmatch(FORM, text_of(stream))
    wait_until(lambda: running(slow) == 0, "nothing runs on")


def test_a_chat_that_is_cancelled_amid_a_tool_call_is_billed_what_it_said_and_nothing_else(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    with server.client() as http, server.client() as other:
        with http.stream("POST", "/v1/chat/completions", json={**CHAT, **REQUIRED, "stream": True}) as reply:
            lines, frames = reply.iter_lines(), list[dict[str, Any]]()
            while len(arguments_of(frames)) < 20:
                frames.append(events_of(next(lines)))
            told = other.post(f"/v1/chat/completions/{reply.headers['x-axon-stream']}/cancel").json()
            frames += map(events_of, lines)
        assert told["status"] == "cancelled"
        [*_, last] = [frame for frame in frames if frame]
        assert last["error"]["code"] == "cancelled"
        assert not any(choice.get("finish_reason") for frame in frames for choice in frame.get("choices", []))
        assert len(arguments_of(frames)) < 600
        wait_until(lambda: running(server) == 0, "the engine is free")
        tokens = told["usage"]["completion_tokens"]
        wait_until(lambda: billed(http) == tokens, "it is billed what it said")
        after = http.post("/v1/chat/completions", json={**CHAT, "max_tokens": 1}).json()["usage"]["completion_tokens"]
        wait_until(lambda: billed(http) == tokens + after, "and nothing that came later")


def arguments_of(frames: list[dict[str, Any]]) -> str:
    deltas = [choice["delta"] for frame in frames for choice in frame.get("choices", [])]
    return "".join(call["function"].get("arguments", "") for delta in deltas for call in delta.get("tool_calls", []))


def test_a_conversation_goes_on_after_a_tool_call_in_it_was_cancelled(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    with server.client() as http, server.client() as other:
        conversation = http.post("/v1/conversations", json={}).json()["id"]
        body = {"model": "echo", "input": "call it", "conversation": conversation}
        with http.stream("POST", "/v1/responses", json={**body, **FLAT, "stream": True}) as reply:
            lines = reply.iter_lines()
            stream_id = reply.headers["x-axon-stream"]
            events = [events_of(next(lines))]
            while events[-1].get("type") != "response.function_call_arguments.delta":
                events.append(events_of(next(lines)))
            stopped = other.post(f"/v1/responses/{stream_id}/cancel").json()
            events += map(events_of, lines)
        assert stopped["status"] == "cancelled"
        [half] = [event["item"] for event in events if event.get("type") == "response.output_item.done"]
        assert (half["type"], half["status"]) == ("function_call", "incomplete"), "nobody takes it for a call"
        items = http.get(f"/v1/conversations/{conversation}/items").json()["data"]
        assert [item for item in items if item["type"] == "function_call" and item["status"] == "completed"] == []
        refused = http.post("/v1/responses", json={"model": "echo", "input": "on", "previous_response_id": stream_id})
        assert refused.status_code == 400
        assert refused.json()["error"]["type"] == "invalid_request_error"
        after = http.post("/v1/responses", json={**body, "input": "go on", "max_output_tokens": 20})
        assert after.raise_for_status().json()["status"] in ("completed", "incomplete")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_ten_thousand_tools_are_refused_by_name(echo: Server, path: str) -> None:
    functions = [{"name": f"f{number}", "strict": True} for number in range(10_000)]
    tools: list[dict[str, Any]]
    if path == "/v1/chat/completions":
        tools = [{"type": "function", "function": {**each, "parameters": {"type": "object"}}} for each in functions]
    elif path == "/v1/responses":
        tools = [{"type": "function", **each, "parameters": {"type": "object"}} for each in functions]
    else:
        tools = [{"name": each["name"], "input_schema": {"type": "object"}} for each in functions]
    said: dict[str, Any] = {"input": "hi"} if path == "/v1/responses" else {"messages": SAID, "max_tokens": 5}
    with echo.client() as http:
        refused = http.post(path, json={"model": "echo", **said, "tools": tools})
    assert refused.status_code == 400
    assert "tools" in refused.json()["error"]["message"]
    assert ("1024" if path == "/v1/messages" else "128") in refused.json()["error"]["message"]


@pytest.mark.parametrize("field", ["guided_json", "guided_json as text", "response_format", "tools", "text.format"])
def test_a_schema_as_deep_as_json_is_read_is_refused_and_no_error_of_ours(echo: Server, field: str) -> None:
    path = "/v1/responses" if field == "text.format" else "/v1/chat/completions"
    with echo.client() as http:
        for levels in (49, 200, 450, *range(900, 1010, 6), 5_000, 50_000):
            schema = '{"items":' * levels + "{}" + "}" * levels
            reply = http.post(path, content=deep(field, schema), headers={"content-type": "application/json"})
            assert reply.status_code == 400, (levels, reply.text[:300])
            assert "deep" in reply.json()["error"]["message"], levels


def deep(field: str, schema: str) -> str:
    chat = '{"model":"echo","messages":[{"role":"user","content":"hi"}],'
    match field:
        case "guided_json":
            return f'{chat}"guided_json":{schema}}}'
        case "guided_json as text":
            return f'{chat}"guided_json":{json.dumps(schema)}}}'
        case "response_format":
            return f'{chat}"response_format":{{"type":"json_schema","json_schema":{{"name":"a","schema":{schema}}}}}}}'
        case "tools":
            function = f'{{"name":"f","strict":true,"parameters":{{"type":"object","properties":{{"a":{schema}}}}}}}'
            return f'{chat}"tools":[{{"type":"function","function":{function}}}]}}'
    return f'{{"model":"echo","input":"hi","text":{{"format":{{"type":"json_schema","name":"a","schema":{schema}}}}}}}'
