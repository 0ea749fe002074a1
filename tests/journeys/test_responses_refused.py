"""What is refused of responses and conversations: others' ids, fields and cursors."""

import json
from typing import Any

import httpx
import openai
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server
from tests.journeys.test_responses import GREEDY, client


def test_a_response_is_no_conversation(echo: Server) -> None:
    with client(echo) as api:
        first = api.responses.create(**GREEDY, input="one")
        api.responses.create(**GREEDY, input="two", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError) as refused:
            api.responses.create(**GREEDY, input="three", conversation=first.id)
        assert refused.value.code == "conversation_not_found"
        with pytest.raises(openai.NotFoundError):
            api.conversations.items.list(first.id)
        with pytest.raises(openai.NotFoundError):
            api.conversations.items.create(first.id, items=[{"role": "user", "content": "x"}])


def test_others_ids_are_answered_exactly_like_unknown_ones(fresh: Fresh) -> None:
    server = fresh.start()
    with client(server) as api:
        talk = api.conversations.create(items=[{"role": "user", "content": "mine"}])
        made = api.responses.create(**GREEDY, input="mine", conversation=talk.id)
        item = next(iter(api.conversations.items.list(talk.id))).id
    stranger = {"Authorization": f"Bearer {_key(server, 'other')}"}
    calls = [
        *[("GET", path) for path in ("responses/R", "responses/R?stream=true", "responses/R/input_items")],
        *[("DELETE", "responses/R"), ("POST", "responses/R/cancel"), ("GET", "conversations/C")],
        *[("GET", "conversations/C/items"), ("GET", "conversations/C/items/I"), ("DELETE", "conversations/C/items/I")],
        *[("POST", "conversations/C"), ("POST", "conversations/C/items"), ("DELETE", "conversations/C")],
    ]
    with server.client() as http:
        for method, path in calls:
            body = {"metadata": {}, "items": [{"role": "user", "content": "x"}]} if method == "POST" else None
            told = [_asked(http, method, path, names, stranger, body) for names in ((made.id, talk.id, item), UNKNOWN)]
            assert told[0] == told[1], (method, path)
            assert told[0][0] == 404, (method, path, told[0])
        for field in ("previous_response_id", "conversation"):
            own, unknown = (made.id, UNKNOWN[0]) if field == "previous_response_id" else (talk.id, UNKNOWN[1])
            told = []
            for name in (own, unknown):
                reply = http.post("/v1/responses", json={**GREEDY, "input": "x", field: name}, headers=stranger)
                told.append((reply.status_code, reply.text.replace(name, "ID")))
            assert told[0] == told[1]
            assert told[0][0] in (400, 404)


UNKNOWN = ("resp_unknown", "conv_unknown", "msg_unknown")


def _asked(
    http: httpx.Client,
    method: str,
    path: str,
    names: tuple[str, str, str],
    headers: dict[str, str],
    body: dict[str, Any] | None,
) -> tuple[int, str]:
    for letter, name in zip("RCI", names, strict=True):
        path = path.replace(f"/{letter}", f"/{name}")
    reply = http.request(method, f"/v1/{path}", headers=headers, json=body)
    text = reply.text
    for letter, name in zip("RCI", names, strict=True):
        text = text.replace(name, letter)
    return reply.status_code, text


def _key(server: Server, tenant: str) -> str:
    made = server.axon("keys", "create", "--tenant", tenant, "--json")
    return str(json.loads(made.stdout)["key"])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no input": ({"input": None}, "input"),
    "empty input": ({"input": []}, "input"),
    "input a number": ({"input": 5}, "input"),
    "a role that does not exist": ({"input": [{"role": "wizard", "content": "x"}]}, "input.0.role"),
    "no role": ({"input": [{"content": "x"}]}, "input.0.role"),
    "no content": ({"input": [{"role": "user"}]}, "input.0.content"),
    "an image": ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input.0.content"),
    "a file": ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input.0.content"),
    "a result of no call": ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input"),
    "a reference": ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0"),
    "both kinds of history": ({"previous_response_id": "resp_1", "conversation": "conv_1"}, "previous_response_id"),
    "tools": ({"tools": [{"type": "web_search"}]}, "tools"),
    "a tool that must be called": ({"tool_choice": "required"}, "tool_choice"),
    "a bad JSON schema": (
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "wizard"}}}},
        "text.format.schema",
    ),
    "too many likely tokens": ({"top_logprobs": 21}, "top_logprobs"),
    "an effort that does not exist": ({"reasoning": {"effort": "endless"}}, "reasoning.effort"),
    "a stored prompt": ({"prompt": {"id": "p"}}, "prompt"),
    "a chat's messages": ({"messages": [{"role": "user", "content": "x"}]}, "messages"),
    "two answers": ({"n": 2}, "n"),
    "a stop string": ({"stop": "c"}, "stop"),
    "unstored in the background": ({"store": False, "background": True}, "store"),
    "unstored in a conversation": ({"store": False, "conversation": "conv_1"}, "store"),
    "seventeen pieces of metadata": ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
    "metadata a number": ({"metadata": {"a": 1}}, "metadata"),
    "metadata too long": ({"metadata": {"a": "x" * 513}}, "metadata"),
    "truncation by chance": ({"truncation": "maybe"}, "truncation"),
    "no tokens": ({"max_output_tokens": 0}, "max_output_tokens"),
    "too hot": ({"temperature": 3}, "temperature"),
    "NUL": ({"input": "a\0b"}, ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_by_its_name(echo: Server, name: str) -> None:
    fields, param = REFUSED[name]
    with echo.client() as http:
        reply = http.post("/v1/responses", json={**GREEDY, "input": "hello", **fields})
        assert reply.status_code == 400, reply.text
        error = reply.json()["error"]
        assert (error["param"] or "").startswith(param), error
        assert reply.headers["x-should-retry"] == "false"


def test_a_header_that_means_nothing_is_refused(echo: Server) -> None:
    with echo.client() as http:
        for field in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
            headers = {"x-axon-when-busy": "panic"}
            reply = http.post("/v1/responses", json={**GREEDY, "input": "x", **field}, headers=headers)
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, "x-axon-when-busy")


@pytest.mark.parametrize(
    ("query", "param"),
    [("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit"), ("order=up", "order"), ("after=no", "after")],
)
def test_a_bad_cursor_is_refused(echo: Server, query: str, param: str) -> None:
    with client(echo) as api, echo.client() as http:
        talk = api.conversations.create()
        reply = http.get(f"/v1/conversations/{talk.id}/items?{query}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


def test_a_response_is_not_continued_as_a_chat_stream(echo: Server) -> None:
    with client(echo) as api, echo.client() as http:
        made = api.responses.create(**GREEDY, input="one")
        reply = http.get(f"/v1/streams/{made.id}")
        assert reply.status_code == 400
        assert f"/v1/responses/{made.id}" in reply.json()["error"]["message"]
        chat = http.post(
            "/v1/chat/completions", json={**GREEDY, "messages": [{"role": "user", "content": "x"}], "store": True}
        ).json()
        assert http.get(f"/v1/responses/{chat['id']}").status_code == 404
        go_on = {**GREEDY, "input": "x", "previous_response_id": chat["id"]}
        assert http.post("/v1/responses", json=go_on).json()["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("conversations", {"items": "x"}, "items"),
        ("conversations", {"items": [{"role": "user", "content": [{"type": "input_image"}]}]}, "items.0.content"),
        ("conversations", {"metadata": {"a": ["b"]}}, "metadata.a"),
        ("conversations/conv_1", {}, "metadata"),
        ("conversations/conv_1/items", {"items": []}, "items"),
        ("responses/input_tokens", {"model": "echo"}, "input"),
        ("responses/input_tokens", {"input": "x"}, "model"),
    ],
)
def test_other_bodies_are_checked_as_well(echo: Server, path: str, body: dict[str, Any], param: str) -> None:
    with echo.client() as http:
        reply = http.post(f"/v1/{path}", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text
