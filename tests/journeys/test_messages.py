"""Anthropic's messages as a plain client sends them: asked, streamed, resumed, stopped, refused."""

import json
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from tests.journeys.server import Server

PROMPT = "The quick brown fox — größer, 更大."
ASK: dict[str, Any] = {
    "model": "echo",
    "max_tokens": 300,
    "temperature": 0,
    "messages": [{"role": "user", "content": PROMPT}],
}
LONG = {**ASK, "max_tokens": 4000, "ignore_eos": True, "stream": True}


def plain(server: Server, **headers: str) -> httpx.Client:
    """A client with no key but those in the headers."""
    return httpx.Client(base_url=server.url, headers=headers, timeout=60)


def events(lines: Iterable[str], most: int | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in lines:
        if line.startswith("data: "):
            found.append(json.loads(line[6:]))
            if len(found) == most:
                break
    return found


def text_of(found: Iterable[dict[str, Any]]) -> str:
    return "".join(each["delta"].get("text", "") for each in found if each["type"] == "content_block_delta")


def test_an_answer_whole_and_streamed_says_the_same_and_is_counted_as_it_was_foretold(echo: Server) -> None:
    ask = {**ASK, "system": [{"type": "text", "text": "Repeat."}]}
    with echo.client() as http:
        whole = http.post("/v1/messages", json=ask)
        with http.stream("POST", "/v1/messages", json={**ask, "stream": True}) as reply:
            streamed = events(reply.iter_lines())
        foretold = http.post(
            "/v1/messages/count_tokens", json={name: ask[name] for name in ("model", "messages", "system")}
        )
    body = whole.json()
    assert (body["type"], body["role"], body["stop_reason"]) == ("message", "assistant", "end_turn")
    assert PROMPT in body["content"][0]["text"]
    assert text_of(streamed) == body["content"][0]["text"]
    usage = body["usage"]
    assert foretold.json() == {"input_tokens": usage["input_tokens"] + usage["cache_read_input_tokens"]}
    assert streamed[0]["message"]["usage"]["input_tokens"] == foretold.json()["input_tokens"]
    assert whole.headers["request-id"] == whole.headers["x-request-id"]
    assert body["id"] == whole.headers["x-axon-stream"]


def test_a_stop_sequence_is_named_in_whole_and_streamed_answers_and_after_a_resume(echo: Server) -> None:
    ask = {**ASK, "stop_sequences": ["zebra", "fox"]}
    with echo.client() as http:
        whole = http.post("/v1/messages", json=ask).json()
        with http.stream("POST", "/v1/messages", json={**ask, "stream": True}) as reply:
            stream_id = reply.headers["x-axon-stream"]
            streamed = events(reply.iter_lines())
        with http.stream("GET", f"/v1/streams/{stream_id}", params={"after": 5}) as reply:
            rest = events(reply.iter_lines())
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("stop_sequence", "fox")
    assert whole["content"][0]["text"].endswith("brown ")
    assert streamed[-2]["delta"] == rest[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "fox"}
    assert streamed[-len(rest) :] == rest
    assert rest[0]["axon"]["seq"] == 6


def test_a_reader_that_comes_back_with_any_number_of_a_stream_gets_exactly_the_rest(echo: Server) -> None:
    with echo.client() as http:
        with http.stream("POST", "/v1/messages", json={**ASK, "stream": True}) as reply:
            stream_id = reply.headers["x-axon-stream"]
            whole = events(reply.iter_lines())
        numbered = [(at, event["axon"]["seq"]) for at, event in enumerate(whole, start=1) if "axon" in event]
        for at, seq in numbered:
            with http.stream("GET", f"/v1/streams/{stream_id}", params={"after": seq}) as reply:
                assert events(reply.iter_lines()) == whole[at:], f"after number {seq}"
        beyond = http.get(f"/v1/streams/{stream_id}", params={"after": numbered[-1][1] + 1})
    assert whole[numbered[-1][0] - 1]["type"] == "message_delta"
    assert beyond.status_code == 400


def test_a_stream_that_broke_goes_on_where_it_broke(slow: Server) -> None:
    ask = {**ASK, "stream": True, "ignore_eos": True}
    with slow.client() as http:
        whole = http.post("/v1/messages", json={**ask, "stream": False}).json()["content"][0]["text"]
        with http.stream("POST", "/v1/messages", json=ask) as reply:
            stream_id = reply.headers["x-axon-stream"]
            before = events(reply.iter_lines(), most=30)
        seq = before[-1]["axon"]["seq"]
        with http.stream("GET", f"/v1/streams/{stream_id}", params={"after": seq}) as reply:
            after = events(reply.iter_lines())
    assert text_of(before) + text_of(after) == whole
    assert after[-2]["delta"]["stop_reason"] == "max_tokens"
    assert after[-1] == {"type": "message_stop"}


def test_a_stream_is_stopped_as_every_other(slow: Server) -> None:
    with slow.client() as http, http.stream("POST", "/v1/messages", json=LONG) as reply:
        lines = reply.iter_lines()
        events(lines, most=3)
        with slow.client() as other:
            stopped = other.delete(f"/v1/streams/{reply.headers['x-axon-stream']}").json()
        last = events(lines)[-1]
    assert stopped["status"] == "cancelled"
    assert 0 < stopped["usage"]["completion_tokens"] < LONG["max_tokens"]
    assert last["type"] == "error"


def test_a_repeated_request_gets_the_first_ones_answer(echo: Server) -> None:
    with echo.client() as http:
        first, again = (
            http.post("/v1/messages", json=ASK, headers={"Idempotency-Key": "messages-1"}).json() for _ in range(2)
        )
        other = http.post("/v1/messages", json={**ASK, "max_tokens": 5}, headers={"Idempotency-Key": "messages-1"})
    assert first == again
    assert (other.status_code, other.json()["error"]["type"]) == (409, "invalid_request_error")


def test_the_key_stands_in_either_header(echo: Server) -> None:
    for headers in ({"x-api-key": echo.key}, {"authorization": f"Bearer {echo.key}"}):
        with plain(echo, **headers) as http:
            assert http.post("/v1/messages", json=ASK).status_code == 200
            assert http.post("/v1/messages/count_tokens", json=ASK).status_code == 200
    with plain(echo, **{"x-api-key": echo.key}) as http:
        assert http.post("/v1/chat/completions", json=ASK).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status", "kind"),
    [
        ("POST", "/v1/messages", {"x-api-key": "wrong"}, ASK, 401, "authentication_error"),
        ("POST", "/v1/messages", {"x-api-key": ""}, ASK, 401, "authentication_error"),
        ("POST", "/v1/messages", {}, {**ASK, "model": "nobody"}, 404, "not_found_error"),
        ("POST", "/v1/messages", {}, {**ASK, "max_tokens": 9_000}, 400, "invalid_request_error"),
        ("POST", "/v1/messages", {}, {**ASK, "max_tokens": "9"}, 400, "invalid_request_error"),
        ("POST", "/v1/messages", {}, [], 400, "invalid_request_error"),
        ("POST", "/v1/messages", {"content-encoding": "gzip"}, ASK, 400, "invalid_request_error"),
        ("POST", "/v1/messages", {}, {**ASK, "system": "x" * 9_000_000}, 413, "request_too_large"),
        ("GET", "/v1/messages", {}, None, 405, "invalid_request_error"),
        ("POST", "/v1/messages/nothing", {}, {}, 404, "not_found_error"),
        ("POST", "/v1/messages/batches", {}, {"requests": []}, 404, "not_found_error"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_every_error_has_anthropics_shape(
    echo: Server, method: str, path: str, headers: dict[str, str], body: Any, status: int, kind: str
) -> None:
    given = headers if "x-api-key" in headers else {"x-api-key": echo.key, **headers}
    with plain(echo, **given) as http:
        reply = http.request(method, path, json=body)
    assert reply.status_code == status, reply.text
    found = reply.json()
    assert set(found) == {"type", "error", "request_id"}
    assert (found["type"], found["error"]["type"]) == ("error", kind)
    assert found["request_id"] == reply.headers["request-id"]
    assert found["error"]["message"]
    assert "openai-version" not in reply.headers
