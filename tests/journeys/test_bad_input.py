"""Bad input gets a clear 4xx in OpenAI's shape, and the server goes on."""

import contextlib
import itertools
import json
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, wait_until

CHAT = {"model": "echo", "messages": [{"role": "user", "content": "hello"}]}


def chat(**fields: object) -> bytes:
    return json.dumps({**CHAT, **fields}).encode()


BAD_BODIES: dict[str, tuple[bytes, int, str | None]] = {
    "no JSON": (b"hello", 400, None),
    "nothing": (b"", 400, None),
    "half a JSON": (b'{"model": "echo", ', 400, None),
    "a list": (b"[]", 400, None),
    "not UTF-8": (b'{"model": "\xff\xfe"}', 400, None),
    "10,000 levels deep": (b'{"messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400, None),
    "no model": (json.dumps({"messages": CHAT["messages"]}).encode(), 400, "model"),
    "model a number": (chat(model=5), 400, "model"),
    "messages a text": (chat(messages="hi"), 400, "messages"),
    "no messages": (chat(messages=[]), 400, "messages"),
    "a role that does not exist": (chat(messages=[{"role": "wizard", "content": "x"}]), 400, "messages.0.role"),
    "content a number": (chat(messages=[{"role": "user", "content": 5}]), 400, "messages.0.content"),
    "no content": (chat(messages=[{"role": "user"}]), 400, "messages.0.content"),
    "an image": (chat(messages=[{"role": "user", "content": [{"type": "image_url"}]}]), 400, "messages.0.content"),
    "negative max_tokens": (chat(max_tokens=-1), 400, "max_tokens"),
    "max_tokens zero": (chat(max_tokens=0), 400, "max_tokens"),
    "max_tokens a text": (chat(max_tokens="5"), 400, "max_tokens"),
    "huge max_tokens": (chat(max_tokens=10**30), 400, "max_tokens"),
    "temperature too high": (chat(temperature=3), 400, "temperature"),
    "negative temperature": (chat(temperature=-0.1), 400, "temperature"),
    "temperature NaN": (b'{"model":"echo","messages":[{"role":"user","content":"x"}],"temperature":NaN}', 400, None),
    "temperature infinite": (
        b'{"model":"echo","messages":[{"role":"user","content":"x"}],"temperature":1e999}',
        400,
        None,
    ),
    "top_p zero": (chat(top_p=0), 400, "top_p"),
    "stream a text": (chat(stream="yes"), 400, "stream"),
    "five stop strings": (chat(stop=["a", "b", "c", "d", "e"]), 400, "stop"),
    "an empty stop string": (chat(stop=""), 400, "stop"),
    "top_k beyond 31 bits": (chat(top_k=10**40), 400, "top_k"),
    "seed beyond 64 bits": (chat(seed=1 << 64), 400, "seed"),
    "n a million": (chat(n=1_000_000), 400, "n"),
    "NUL": (chat(messages=[{"role": "user", "content": "a\0b"}]), 400, None),
    "a lone surrogate": (b'{"model":"echo","messages":[{"role":"user","content":"\\ud800"}]}', 400, None),
    "built-in tools": (chat(tools=[{"type": "web_search"}]), 400, "tools.0.type"),
    "a schema without its name": (
        chat(response_format={"type": "json_schema", "json_schema": {"schema": {}}}),
        400,
        "response_format.json_schema.name",
    ),
    "a schema that is not supported": (chat(guided_json={"not": {}}), 400, "guided_json"),
    "a field of another route": (chat(prompt="hi"), 400, "prompt"),
    "a directive that is not followed": (chat(use_beam_search=True), 400, "use_beam_search"),
    "no choice": (chat(n=0), 400, "n"),
    "top_logprobs without logprobs": (chat(top_logprobs=2), 400, "top_logprobs"),
    "21 top_logprobs": (chat(logprobs=True, top_logprobs=21), 400, "top_logprobs"),
    "logprobs a number": (chat(logprobs=1), 400, "logprobs"),
    "a bias of a word": (chat(logit_bias={"hello": 1}), 400, "logit_bias"),
    "a bias beyond 100": (chat(logit_bias={"5": 101}), 400, "logit_bias"),
    "presence_penalty 3": (chat(presence_penalty=3), 400, "presence_penalty"),
    "repetition_penalty 0": (chat(repetition_penalty=0), 400, "repetition_penalty"),
    "min_p 2": (chat(min_p=2), 400, "min_p"),
    "min_tokens more than max_tokens": (chat(min_tokens=5, max_tokens=4), 400, "min_tokens"),
    "negative stop_token_ids": (chat(stop_token_ids=[-1]), 400, "stop_token_ids"),
    "10 MB": (chat(messages=[{"role": "user", "content": "x" * 10_000_000}]), 413, None),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_refused_in_openais_shape(echo: Server, name: str) -> None:
    body, status, param = BAD_BODIES[name]
    with echo.client() as http:
        reply = http.post("/v1/chat/completions", content=body, headers={"content-type": "application/json"})
        assert reply.status_code == status, reply.text
        error = reply.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["message"]
        assert isinstance(error["code"], str)
        assert (error["param"] or "").startswith(param or ""), error
        assert reply.headers["x-should-retry"] == "false"
        assert http.get("/readyz").status_code == 200


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        [],
        [-1],
        [258],
        [10**12],
        ["two", ""],
        [[1, 2], []],
        [[1], [258]],
        [[1], "x"],
        ["x"] * 129,
        [1, "x"],
        {"a": 1},
        None,
    ],
)
def test_a_bad_prompt_is_refused(echo: Server, prompt: object) -> None:
    with echo.client() as http:
        reply = http.post("/v1/completions", json={"model": "echo", "prompt": prompt})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "prompt"), reply.text


def test_unknown_fields_and_neutral_values_are_taken(echo: Server) -> None:
    neutral = {
        "n": 1,
        "logprobs": None,
        "tools": None,
        "presence_penalty": 0,
        "stop": None,
        "user": "me",
        "x": {"y": 1},
    }
    with echo.client() as http:
        assert http.post("/v1/chat/completions", content=chat(**neutral)).status_code == 200


def test_every_route_but_the_probes_and_the_first_page_is_closed_without_a_key(echo: Server) -> None:
    with echo.client() as http:
        paths = http.get("/openapi.json").json()["paths"]
    public = {"/", "/livez", "/readyz", "/health"}
    others = [(method, path) for path, methods in paths.items() if path not in public for method in methods]
    others += [("get", "/docs"), ("get", "/openapi.json"), ("get", "//"), ("get", "/nowhere"), ("get", "//v1/models")]
    others += [("get", "/v1/../v1/models"), ("get", "/%2e%2e/v1/models"), ("post", "/livez/../v1/completions")]
    assert len(others) > 8
    good = f"Bearer {echo.key}"
    wrongs = (None, "", "Bearer", f"Basic {echo.key}", f"Bearer {good}", good[:-1], good + "x", "Bearer \xff")
    with httpx.Client(timeout=60) as stranger:
        for wrong, (method, path) in itertools.product(wrongs, others):
            headers = {} if wrong is None else {b"Authorization": wrong.encode("latin-1")}
            reply = stranger.request(method, echo.url + path, headers=headers)
            assert reply.status_code == 401, (wrong, method, path, reply.text)
            error = reply.json()["error"]
            if path.startswith("/v1/messages"):  # which answers in Anthropic's shape
                assert error["type"] == "authentication_error"
            elif path.startswith("/api/"):  # which answers in Ollama's
                assert "API key" in error
            else:
                assert error["code"] == "invalid_api_key"
    two = httpx.get(echo.url + "/v1/models", headers=[("Authorization", good), ("Authorization", good)], timeout=60)
    assert two.status_code == 401
    assert "more than one Authorization header" in two.json()["error"]["message"]
    for path in public:
        assert httpx.get(echo.url + path, timeout=60).status_code == 200


def test_an_unknown_path_or_method_is_answered_in_openais_shape(echo: Server) -> None:
    with echo.client() as http:
        unknown, wrong_method = http.get("/v1/nothing"), http.get("/v1/completions")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_url")
    assert (wrong_method.status_code, wrong_method.json()["error"]["code"]) == (405, "method_not_allowed")


def test_a_connection_that_sends_its_headers_too_slowly_is_closed(fresh: Fresh) -> None:
    server = fresh.start(gateway_header_timeout_s=0.3)
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as slow:
        slow.sendall(b"GET /livez HTTP/1.1\r\nX-Slow: ")
        assert slow.recv(100) == b""


def test_a_body_that_does_not_come_in_time_is_refused(fresh: Fresh) -> None:
    server = fresh.start(gateway_body_timeout_s=0.3)
    address = urlsplit(server.url)
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\nContent-Length: 50\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=60) as slow:
        slow.sendall(head.encode() + b'{"model"')
        assert b" 408 " in slow.recv(1000).split(b"\r\n")[0]


def test_neither_prompts_nor_keys_are_logged(fresh: Fresh) -> None:
    server = fresh.start(log_level="debug")
    canary = "canary-9f2b"
    with server.client() as http:
        http.post("/v1/chat/completions", content=chat(messages=[{"role": "user", "content": canary}]))
        http.post("/v1/chat/completions", content=b'{"model": "' + canary.encode() + b'", "messages": 5}')
        http.post("/v1/completions", json={"model": "echo", "prompt": canary, "temperature": -1})
        http.get("/v1/models", headers={"Authorization": f"Bearer {server.key[:-1]}"})
        metrics = httpx.get(server.metrics_url, timeout=60).text
    key = server.key
    server.stop()
    secret = key.split("_", 2)[2]
    assert "request" in server.log
    for text in (server.log, metrics):
        assert canary not in text
        assert secret not in text


def test_headers_that_are_too_long_are_refused(echo: Server) -> None:
    address = urlsplit(echo.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as long:
        long.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                long.sendall(b"x" * 10_000)
        assert b" 431 " in long.recv(1000).split(b"\r\n")[0]
    with echo.client() as http:
        assert http.get("/v1/models", headers={"X-Long": "x" * 10_000}).status_code == 200


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01 hello\r\n\r\n", b"GET /livez SMTP/1.1\r\n\r\n"], ids=["tls", "not-http"]
)
def test_what_is_no_http_is_told_so_in_the_shape_of_every_error(echo: Server, data: bytes) -> None:
    address = urlsplit(echo.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as strange:
        strange.sendall(data)
        head, _, body = strange.makefile("rb").read().partition(b"\r\n\r\n")
    assert b" 400 " in head.split(b"\r\n")[0]
    assert b"application/json" in head
    assert json.loads(body)["error"]["code"] == "invalid_http"


def test_a_body_in_another_encoding_is_refused(echo: Server) -> None:
    with echo.client() as http:
        reply = http.post("/v1/chat/completions", content=chat(), headers={"Content-Encoding": "gzip"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "unsupported_encoding")


def test_a_revoked_key_is_refused_soon(fresh: Fresh) -> None:
    server = fresh.start()
    made = server.axon("keys", "create", "--json")
    key = json.loads(made.stdout)["key"]
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as http:
        assert http.get("/v1/models").status_code == 200
        server.axon("keys", "revoke", key).check_returncode()
        wait_until(lambda: http.get("/v1/models").status_code == 401, "the key is out")


def test_a_client_that_does_not_wait_for_its_answer_is_no_error_of_ours(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.05, sessions_reader_grace_s=2.0)
    address = urlsplit(server.url)
    body = json.dumps({"model": "echo", "prompt": "hello", "max_tokens": 500, "ignore_eos": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=60) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_until(lambda: server.metric("axon_requests_running") == 1, "it runs")
    wait_until(lambda: server.metric(r'axon_requests_total\{outcome="499"[^}]*\}') == 1, "it is counted as left")
    wait_until(lambda: server.metric("axon_requests_running") == 0, "nothing runs for nobody")
