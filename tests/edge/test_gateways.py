"""An edge before real gateways: keys, streams that are resumed through it, sockets, and a gateway that is killed."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.edge.conftest import AnyEdge, MakeEdge
from tests.edge.line import client, trust
from tests.journeys.conftest import PATIENT, on_services
from tests.journeys.server import Server, running, wait_until
from tests.journeys.sse import Piece, pieces, text_of
from tests.journeys.test_socket import TERMINAL
from tests.services.process import free_port

PROMPT = "The quick brown fox jumps over the lazy dog. " * 5
NUM_TOKENS = 200
ASK = {
    "model": "echo",
    "prompt": PROMPT,
    "max_tokens": NUM_TOKENS,
    "stream": True,
    "ignore_eos": True,
    "temperature": 0,
}
SLOW = {"engine_kind": "echo", "engine_echo_step_s": 0.003, "gateway_proxies": 1}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("behind") / "data", **SLOW) as server:
        yield server


@pytest.fixture(scope="module")
def edge(make_edge: MakeEdge, server: Server) -> AnyEdge:
    return make_edge(int(server.url.rpartition(":")[2]))


def read(reply: httpx.Response, most: int | None = None) -> list[Piece]:
    got = []
    for piece in pieces(reply.iter_lines()):
        got.append(piece)
        if len(got) == most:
            break
    return got


def test_who_has_no_good_key_hears_it_from_the_gateway(edge: AnyEdge, server: Server, kind: str) -> None:
    """By nginx in the words of that route; Envoy passes on what was said to itself, in OpenAI's shape."""
    paths = ("/v1/completions", "/v1/models", "/v1/messages", "/v1/files", "/tokenize", "/api/chat")
    with client(edge.url, "wrong") as http, httpx.Client(headers=http.headers, timeout=60) as straight:
        for path in paths:
            told, own = (
                http.post(path, json=ASK),
                straight.post(server.url + (path if kind == "nginx" else "/v1/auth"), json=ASK),
            )
            assert told.status_code == own.status_code == 401, path
            assert told.headers.get_list("www-authenticate") == own.headers.get_list("www-authenticate")
            assert _without_id(told.json()) == _without_id(own.json())
            if "request_id" in told.json():
                assert told.json()["request_id"] == told.headers["request-id"]


def _without_id(body: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in body.items() if name != "request_id"}


def test_a_browser_logs_in_to_the_pages_with_a_key(edge: AnyEdge, server: Server) -> None:
    with client(edge.url, "") as http:
        for path in ("/docs", "/openapi.json"):
            assert http.get(path).status_code == 401
            assert "Basic" in http.get(path).headers["www-authenticate"]
            assert http.get(path, auth=("anybody", server.key)).status_code == 200
        for path in ("/", "/livez", "/readyz", "/health", "/console", "/sign-in", "/ui/common/api.js"):
            assert http.get(path).status_code == 200


def test_a_browser_signs_in_at_the_pages_and_uses_the_api_with_its_cookie(edge: AnyEdge, server: Server) -> None:
    with client(edge.url, "") as http:
        signed = http.post("/ui/sign-in", json={"key": server.key})
        assert (signed.status_code, "; Secure" in signed.headers["set-cookie"]) == (200, True), signed.text
        token = {"x-axon-csrf": signed.json()["csrf"]}
        assert http.get("/v1/models").status_code == 200
        assert http.post("/v1/completions", json=ASK).status_code == 403
        assert http.post("/v1/completions", json=ASK, headers=token).status_code == 200
        assert http.get("/v1/models", headers={"sec-fetch-site": "cross-site"}).status_code == 403
        assert http.post("/ui/sign-out", headers=token).status_code == 200
        assert http.get("/v1/models").status_code == 401


def test_a_stale_second_key_empties_no_conversation(edge: AnyEdge, server: Server, kind: str) -> None:
    """What the gateway does not look at does not count at nginx; Envoy refuses it. Neither loses the body."""
    said = {"items": [{"type": "message", "role": "user", "content": "keep me"}]}
    with client(edge.url, server.key) as http:
        made = http.post("/v1/conversations", json=said, headers={"X-API-Key": "stale"})
        if kind == "envoy":
            assert made.status_code == 401
        else:
            kept = http.get(f"/v1/conversations/{made.json()['id']}/items").json()["data"]
            assert [each["content"][0]["text"] for each in kept] == ["keep me"]
        assert http.post("/v1/messages", json={}, headers={"X-API-Key": "stale"}).status_code == 401


def test_a_good_key_opens_in_either_header_and_by_every_method(edge: AnyEdge, server: Server) -> None:
    message = {"model": "echo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
    with httpx.Client(base_url=edge.url, verify=trust(), timeout=60) as http:
        reply = http.post("/v1/messages", json=message, headers={"X-API-Key": server.key})
        assert reply.status_code == 200, reply.text
    with client(edge.url, server.key) as http:
        made = http.post("/v1/conversations", json={}).raise_for_status().json()["id"]
        assert http.get(f"/v1/conversations/{made}").status_code == 200
        assert http.delete(f"/v1/conversations/{made}").status_code == 200
        assert http.get("/readyz").status_code == 200
        assert http.get("/v1/auth").json() == {"status": "ok"}


def test_a_stream_is_resumed_through_the_edge(edge: AnyEdge, server: Server) -> None:
    with client(edge.url, server.key) as http:
        whole = http.post("/v1/completions", json={**ASK, "stream": False}).json()["choices"][0]["text"]
        with http.stream("POST", "/v1/completions", json=ASK) as reply:
            stream_id, before = reply.headers["x-axon-stream"], read(reply, most=10)
        with http.stream("GET", f"/v1/streams/{stream_id}", params={"after": before[-1].seq}) as reply:
            rest = read(reply)
    assert text_of(before) + text_of(rest) == whole


def test_a_socket_goes_through_the_edge(edge: AnyEdge, server: Server) -> None:
    address = edge.url.replace("https", "wss") + "/v1/responses"
    headers = {"Authorization": f"Bearer {server.key}"}
    with connect(address, ssl=trust(), additional_headers=headers, open_timeout=60) as line:
        line.send(json.dumps({"type": "response.create", "model": "echo", "input": "hello", "max_output_tokens": 3}))
        kinds: list[str] = []
        while not kinds or kinds[-1] not in TERMINAL:
            kinds.append(json.loads(line.recv(timeout=60))["type"])
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.incomplete"  # it may say three tokens


@pytest.mark.services
def test_a_stream_whose_gateway_is_killed_goes_on_at_another_and_its_turn_is_run_once(
    make_edge: MakeEdge, tmp_path: Path
) -> None:
    place = {**PATIENT, **SLOW, **on_services(), "pepper": "shared", "engine_echo_step_s": 0.02}
    ports = free_port(), free_port()
    with (
        running(tmp_path / "first", **place, gateway_port=ports[0]) as first,
        running(tmp_path / "second", **place, gateway_port=ports[1]) as second,
        client(make_edge(*ports).url, first.key) as http,
    ):
        whole = http.post("/v1/completions", json={**ASK, "stream": False}).json()["choices"][0]["text"]
        with http.stream("POST", "/v1/completions", json=ASK) as reply:
            stream_id, broken = reply.headers["x-axon-stream"], pieces(reply.iter_lines())
            before = [next(broken) for _ in range(5)]
            next(each for each in (first, second) if each.metric("axon_streams_open")).kill()
            with pytest.raises(httpx.TransportError):
                before += broken
        rest = _rest(http, stream_id, before[-1].seq)
        assert text_of(before) + text_of(rest) == whole
        wait_until(lambda: _num_tokens(http) >= 2 * NUM_TOKENS, "both turns are in the store")
        assert _num_tokens(http) == 2 * NUM_TOKENS


def _rest(http: httpx.Client, stream_id: str, after: int) -> list[Piece]:
    """What comes after a position; an edge that has found no gateway says so, and is asked again."""
    for _ in range(100):
        with http.stream("GET", f"/v1/streams/{stream_id}", params={"after": after}) as again:
            if again.status_code != 503:
                return read(again)
            assert again.headers["retry-after"]
        time.sleep(0.1)
    raise AssertionError("no gateway answers any more")


def _num_tokens(http: httpx.Client) -> int:
    """Output tokens that the tenant has been billed; 0 while the edge finds no gateway."""
    reply = http.get("/v1/usage")
    return 0 if reply.status_code == 503 else sum(each["output_tokens"] for each in reply.json()["data"])
