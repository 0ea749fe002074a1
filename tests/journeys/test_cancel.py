"""An answer that is stopped ends at once, and what it would have said after that is not billed."""

import json
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, wait_until
from tests.journeys.sse import pieces
from tests.journeys.test_tenants import axon, holding

PROMPT = "An answer that nobody waits for any more. " * 10
CHAT = {"model": "echo", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 5000, "ignore_eos": True}
TEXT = {"model": "echo", "prompt": PROMPT, "max_tokens": 5000, "ignore_eos": True}
RESPONSE = {"model": "echo", "input": PROMPT, "max_output_tokens": 5000, "ignore_eos": True}
STEP_S = 0.01
NUM_LATER = 1500
"""Tokens of answers that are heard to their end: three seconds and more with a step of 2 ms."""
OUTPUT = r'axon_tokens_total\{kind="output"[^}]*\}'

CANCELS = [
    ("/v1/chat/completions", CHAT, "POST", "/v1/chat/completions/{id}/cancel"),
    ("/v1/chat/completions", CHAT, "DELETE", "/v1/streams/{id}"),
    ("/v1/completions", TEXT, "POST", "/v1/completions/{id}/cancel"),
    ("/v1/completions", TEXT, "DELETE", "/v1/streams/{id}"),
    ("/v1/responses", RESPONSE, "DELETE", "/v1/streams/{id}"),
]


def running(server: Server) -> int:
    return int(server.metric("axon_requests_running"))


def cancelled(server: Server, cause: str) -> int:
    return int(server.metric(rf'axon_cancelled_total\{{cause="{cause}"\}}'))


def billed(http: httpx.Client) -> int:
    return sum(int(day["output_tokens"]) for day in http.get("/v1/usage").json()["data"])


def data_of(reply: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: {")]


def said(frames: list[dict[str, Any]]) -> str:
    """The text of a chat's frames."""
    return "".join(each["delta"].get("content") or "" for frame in frames for each in frame.get("choices", []))


@pytest.mark.parametrize(("path", "body", "method", "cancel"), CANCELS)
def test_every_kind_of_turn_can_be_cancelled(
    fresh: Fresh, path: str, body: dict[str, Any], method: str, cancel: str
) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S)
    with server.client() as http, server.client() as other:
        with http.stream("POST", path, json={**body, "stream": True}) as reply:
            lines = reply.iter_lines()
            for _ in range(20):
                next(lines)
            answer = other.request(method, cancel.format(id=reply.headers["x-axon-stream"]))
            assert answer.status_code == 200, answer.text
            wait_until(lambda: running(server) == 0, "the engine is free")
            rest = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        told = answer.json()
        assert (told["id"], told["status"]) == (reply.headers["x-axon-stream"], "cancelled")
        assert 0 < told["usage"]["completion_tokens"] < 1000
        last = rest[-1]
        assert last.get("response", {}).get("status") == "cancelled" or last["error"]["code"] == "cancelled"
        again = other.request(method, cancel.format(id=told["id"]))
        assert (again.status_code, again.json()) == (200, told)
        wait_until(lambda: billed(http) == told["usage"]["completion_tokens"], "it is billed what it said")
    assert cancelled(server, "asked") == 1


@pytest.mark.parametrize("kind", ["chat", "text"])
def test_what_was_said_before_the_stop_is_billed_and_read_and_nothing_else(fresh: Fresh, kind: str) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S)
    path, body = ("/v1/chat/completions", CHAT) if kind == "chat" else ("/v1/completions", TEXT)
    with server.client() as http, server.client() as other:
        with http.stream("POST", path, json={**body, "n": 2, "stream": True}) as reply:
            lines = reply.iter_lines()
            before = [next(lines) for _ in range(30)]
            told = other.delete(f"/v1/streams/{reply.headers['x-axon-stream']}").json()
            frames = [json.loads(line[6:]) for line in [*before, *lines] if line.startswith("data: {")]
        seqs = [frame["axon"]["seq"] for frame in frames if "axon" in frame]
        assert max(seqs) == told["usage"]["completion_tokens"]
        again = http.get(f"/v1/streams/{told['id']}")
        assert data_of(again)[-1]["error"]["code"] == "cancelled"


def test_a_key_stands_for_the_turn_that_was_stopped(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S)
    body, key = {**CHAT, "stream": True}, {"Idempotency-Key": "order-17"}
    with server.client() as http, server.client() as other:
        with http.stream("POST", "/v1/chat/completions", json=body, headers=key) as reply:
            lines = reply.iter_lines()
            before = [next(lines) for _ in range(20)]
            told = other.delete(f"/v1/streams/{reply.headers['x-axon-stream']}").json()
            first = [json.loads(line[6:]) for line in [*before, *lines] if line.startswith("data: {")]
        again = http.post("/v1/chat/completions", json=body, headers=key)
        assert (again.status_code, again.headers["x-axon-stream"]) == (200, told["id"])
        assert said(data_of(again)) == said(first) != ""
        assert data_of(again)[-1]["error"]["code"] == "cancelled"
        other_body = http.post("/v1/chat/completions", json={**body, "seed": 5}, headers=key)
        assert (other_body.status_code, other_body.json()["error"]["code"]) == (409, "idempotency_key_reused")
        assert running(server) == 0
        wait_until(lambda: billed(http) == told["usage"]["completion_tokens"], "it is billed once")


def test_a_key_of_a_response_in_the_background_stands_for_it_when_it_was_stopped(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S)
    body, key = {**RESPONSE, "background": True}, {"Idempotency-Key": "order-17"}
    with server.client() as http:
        made = http.post("/v1/responses", json=body, headers=key).json()
        wait_until(lambda: running(server) == 1, "it runs")
        assert http.post(f"/v1/responses/{made['id']}/cancel").json()["status"] == "cancelled"
        again = http.post("/v1/responses", json=body, headers=key).json()
        assert (again["id"], again["status"]) == (made["id"], "cancelled")
        assert running(server) == 0


def test_a_turn_that_waits_for_a_place_can_be_cancelled(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S, engine_max_sequences=1)
    body = {**TEXT, "stream": True}
    with server.client() as http, server.client() as third, http.stream("POST", "/v1/completions", json=body) as first:
        ahead = first.iter_lines()
        next(ahead)
        with server.client() as other, other.stream("POST", "/v1/completions", json=body) as second:
            told = third.delete(f"/v1/streams/{second.headers['x-axon-stream']}").json()
            assert (told["status"], told["usage"]["completion_tokens"]) == ("cancelled", 0)
        third.delete(f"/v1/streams/{first.headers['x-axon-stream']}")


def test_an_answer_that_is_complete_stays_as_it_is(echo: Server) -> None:
    with echo.client() as http:
        made = http.post("/v1/chat/completions", json={**CHAT, "max_tokens": 5})
        for method, path in (("DELETE", "/v1/streams/{id}"), ("POST", "/v1/chat/completions/{id}/cancel")):
            told = http.request(method, path.format(id=made.headers["x-axon-stream"]))
            assert (told.status_code, told.json()["status"]) == (200, "completed")
            assert told.json()["usage"] == made.json()["usage"]
        assert http.get(f"/v1/streams/{made.headers['x-axon-stream']}").status_code == 200


def test_a_foreign_turn_is_answered_exactly_like_an_unknown_one(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S)
    stranger = axon(server, "keys", "create", "--tenant", "stranger")["key"]
    ways = [
        ("DELETE", "/v1/streams/{id}"),
        ("POST", "/v1/chat/completions/{id}/cancel"),
        ("POST", "/v1/completions/{id}/cancel"),
    ]
    with sent(server, {**CHAT, "stream": True}) as line, server.client() as http, holding(server, stranger) as other:
        wait_until(lambda: running(server) == 1, "it runs")
        stream_id = re.search(r"x-axon-stream: (\S+)", line.recv(4096).decode())[1]  # type: ignore[index]
        for method, path in ways:
            foreign = other.request(method, path.format(id=stream_id))
            unknown = other.request(method, path.format(id="chatcmpl-nothing"))
            assert foreign.status_code == unknown.status_code == 404
            assert foreign.text.replace(stream_id, "ID") == unknown.text.replace("chatcmpl-nothing", "ID")
        assert http.post(f"/v1/completions/{stream_id}/cancel").status_code == 404  # it is no completion
        assert running(server) == 1
        assert http.delete(f"/v1/streams/{stream_id}").json()["status"] == "cancelled"


def sent(server: Server, body: dict[str, Any], path: str = "/v1/chat/completions", headers: str = "") -> socket.socket:
    """A request on a connection of its own, which nobody reads."""
    address = urlsplit(server.url)
    client = socket.create_connection((address.hostname, address.port), timeout=60)
    client.sendall(posted(server, body, path, headers))
    return client


def posted(server: Server, body: dict[str, Any], path: str = "/v1/chat/completions", headers: str = "") -> bytes:
    """A request as its client sends it."""
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n{headers}"
    return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text


def test_a_whole_answer_whose_client_leaves_is_cancelled_at_once(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S, sessions_reader_grace_s=300.0)
    with sent(server, CHAT):
        wait_until(lambda: running(server) == 1, "it runs")
    wait_until(lambda: running(server) == 0, "nothing runs for nobody")
    wait_until(lambda: cancelled(server, "left") == 1, "it is counted")
    wait_until(lambda: 0 < server.metric(OUTPUT) < 3000, "it is billed what it said")


def test_a_client_that_sent_another_request_ahead_is_seen_to_leave(fresh: Fresh) -> None:
    """HTTP pipelining: the second request waits for the first one's answer, and is not begun for nobody."""
    server = fresh.start(engine_echo_step_s=STEP_S, sessions_reader_grace_s=300.0)
    with sent(server, CHAT) as line:
        wait_until(lambda: running(server) == 1, "it runs")
        line.sendall(posted(server, CHAT))
    wait_until(lambda: running(server) == 0, "nothing runs for nobody")
    wait_until(lambda: cancelled(server, "left") == 1, "it is counted")
    wait_until(lambda: 0 < server.metric(OUTPUT) < 3000, "it is billed what it said")


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/chat/completions", {**CHAT, "max_tokens": NUM_LATER, "store": True}, ""),
        ("/v1/chat/completions", {**CHAT, "max_tokens": NUM_LATER}, "Idempotency-Key: again\r\n"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": NUM_LATER, "stream": True}, ""),
        ("/v1/chat/completions", {**CHAT, "max_tokens": NUM_LATER}, "x-axon-reader-grace: 200\r\n"),
        ("/v1/responses", {**RESPONSE, "max_output_tokens": NUM_LATER}, ""),
    ],
)
def test_what_can_be_read_later_goes_on_without_its_client(
    fresh: Fresh, path: str, body: dict[str, Any], headers: str
) -> None:
    server = fresh.start(engine_echo_step_s=0.002, sessions_reader_grace_s=300.0)
    with sent(server, body, path, headers):
        wait_until(lambda: running(server) == 1, "it runs")
    wait_until(lambda: server.metric(OUTPUT) == NUM_LATER, "it is complete", timeout_s=60)
    assert server.metric("axon_cancelled_total") == 0


def test_a_stream_that_declines_the_grace_ends_with_its_connection(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S, sessions_reader_grace_s=300.0)
    headers = {"x-axon-reader-grace": "0"}
    with server.client() as http:
        for path, body in (("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSE)):
            with http.stream("POST", path, json={**body, "stream": True}, headers=headers) as reply:
                lines = reply.iter_lines()
                next(lines)
                wait_until(lambda: running(server) == 1, "it runs")
            wait_until(lambda: running(server) == 0, "nothing runs for nobody")
    wait_until(lambda: cancelled(server, "left") == 2, "they are counted")


def test_a_stream_that_shortens_the_grace_is_cancelled_when_that_is_over(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S, sessions_reader_grace_s=300.0)
    headers = {"x-axon-reader-grace": "3"}
    with server.client() as http:
        with http.stream("POST", "/v1/completions", json={**TEXT, "stream": True}, headers=headers) as reply:
            lines = reply.iter_lines()
            for _ in range(800):  # for longer than the grace; every second line is empty
                next(lines)
            assert running(server) == 1
        wait_until(lambda: running(server) == 0, "nothing runs for nobody")
    wait_until(lambda: cancelled(server, "absent") == 1, "it is counted")


@pytest.mark.parametrize("value", ["-1", "soon", "nan", "inf", "1e400"])
def test_a_grace_that_is_no_time_is_refused_by_its_name(echo: Server, value: str) -> None:
    with echo.client() as http:
        for path, body in (("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSE)):
            refused = http.post(path, json=body, headers={"x-axon-reader-grace": value})
            assert refused.status_code == 400
            assert refused.json()["error"]["param"] == "x-axon-reader-grace"


def test_a_grace_beyond_the_servers_own_is_the_servers_own(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=STEP_S, sessions_reader_grace_s=1.0)
    headers = {"x-axon-reader-grace": "3600"}
    with server.client() as http:
        with http.stream("POST", "/v1/completions", json={**TEXT, "stream": True}, headers=headers) as reply:
            next(reply.iter_lines())
        wait_until(lambda: running(server) == 0, "nothing runs for nobody")


def test_two_readers_of_a_stream_do_not_stop_it_for_each_other(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.002, sessions_reader_grace_s=300.0)
    headers = {"x-axon-reader-grace": "0"}
    body = {**TEXT, "max_tokens": NUM_LATER, "stream": True}
    with server.client() as http, http.stream("POST", "/v1/completions", json=body, headers=headers) as first:
        ahead = first.iter_lines()
        next(ahead)
        with server.client() as other, other.stream("GET", f"/v1/streams/{first.headers['x-axon-stream']}") as second:
            lines = second.iter_lines()
            next(lines)
            first.close()
            assert list(pieces(lines))[-1].finish == "length"
