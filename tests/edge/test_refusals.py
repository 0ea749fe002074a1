"""What an edge answers by itself: nothing of a request that it refuses is run, and nobody without a key fills it."""

import contextlib
import json
import socket
import ssl

import pytest

from tests.edge.conftest import AnyEdge, MakeEdge
from tests.edge.line import KEY, client, connected, first, first_by_http_2
from tests.edge.upstream import Answer, Seen, Upstream, closes, ok, says
from tests.services.process import wait_for

REFUSED = '{"error":{"message":"No.","type":"authentication_error","param":null,"code":"invalid_api_key"}}'
ONE_MIB = 1 << 20


def head(first_line: str, *headers: str, key: str = "") -> bytes:
    return "\r\n".join([f"{first_line} HTTP/1.1", "Host: axon", *headers, key + "\r\n"]).encode()


def error(body: bytes | str) -> dict[str, object]:
    """Of an answer in the API's shape."""
    [(name, found)] = json.loads(body).items()
    assert name == "error"
    assert set(found) == {"message", "type", "param", "code"}
    return dict(found)


@pytest.mark.parametrize(
    ("first_line", "upgrade"),
    [
        ("GET /v1/responses", "h2c"),
        ("GET /v1/responses", "websocket, h2c"),
        ("GET /v1/models", "websocket"),
        ("GET /v1/responses/resp_1", "websocket"),
        ("POST /v1/responses", "websocket"),
        ("POST /tokenize", "h2c"),
        ("POST /tokenize", "websocket"),
        ("POST /livez", "h2c"),
        ("OPTIONS /v1/responses", "websocket"),
    ],
)
def test_a_gateway_hears_of_no_other_protocol(
    shared_edge: AnyEdge, upstream: Upstream, kind: str, first_line: str, upgrade: str
) -> None:
    hidden = b"GET /v1/smuggled HTTP/1.1\r\nHost: axon\r\n\r\n"
    headers = ("Connection: Upgrade", f"Upgrade: {upgrade}", f"Content-Length: {len(hidden)}")
    answer = first(shared_edge.port, head(first_line, *headers, key=KEY) + hidden)
    if kind == "envoy" and upgrade == "websocket":
        assert not upstream.seen
        assert answer.status == 403
        assert error(answer.body)["code"] == "upgrade_not_taken"
    for each in upstream.seen:
        assert "smuggled" not in each.path
        assert not each.values("upgrade")
        assert "upgrade" not in "".join(each.values("connection")).lower()
    assert not upstream.problems


@pytest.mark.parametrize("path", ["/v1/responses", "/livez"])
def test_nor_by_http_2(shared_edge: AnyEdge, upstream: Upstream, path: str) -> None:
    told = [(":method", "GET"), (":scheme", "https"), (":authority", "axon"), (":path", path)]
    first_by_http_2(
        shared_edge.port, *told, ("authorization", "Bearer good"), ("upgrade", "websocket"), body=b"GET /v1/a HTTP/1.1"
    )
    assert not [each for each in upstream.seen if each.values("upgrade")]


@pytest.mark.parametrize("name", ["websocket", "WebSocket"])
def test_a_websocket_is_handed_over_at_its_path(shared_edge: AnyEdge, upstream: Upstream, name: str) -> None:
    told = head("GET /v1/responses?response_id=resp_1", "Connection: Upgrade", f"Upgrade: {name}", key=KEY)
    assert first(shared_edge.port, told).status == 200
    [seen] = upstream.asked
    assert [each.lower() for each in seen.values("upgrade")] == ["websocket"]
    assert [each.lower() for each in seen.values("connection")] == ["upgrade"]


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests"])
@pytest.mark.parametrize("path", ["/v1/conversations", "/v1/files", "/tokenize"])
def test_what_is_refused_is_said_in_a_gateways_words_and_run_by_none(
    shared_edge: AnyEdge, upstream: Upstream, path: str, status: str
) -> None:
    upstream.about_key = says(status, REFUSED, "www-authenticate: Bearer", "retry-after: 7", "x-should-retry: true")
    with client(shared_edge.url) as http:
        reply = http.post(path, json={"items": []})
    assert reply.status_code == int(status[:3])
    assert reply.text == REFUSED
    assert reply.headers["content-type"] == "application/json"
    if reply.status_code == 401:
        assert reply.headers.get_list("www-authenticate") == ["Bearer"]
    if reply.status_code == 429:
        assert (reply.headers["retry-after"], reply.headers["x-should-retry"]) == ("7", "true")
    assert not upstream.asked
    assert not [each for each in upstream.seen if each.body]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(says("500 Internal Server Error", "{}"), id="500"),
        pytest.param(says("503 Service Unavailable", "{}"), id="503"),
        pytest.param(closes, id="dies"),
    ],
)
def test_where_nobody_can_say_whether_the_key_is_good_nothing_is_run(
    shared_edge: AnyEdge, upstream: Upstream, answer: Answer
) -> None:
    upstream.about_key = answer
    with client(shared_edge.url) as http:
        reply = http.post("/v1/conversations", json={"items": []})
    assert reply.status_code == 503
    assert error(reply.text)["code"] == "gateway_unavailable"
    assert reply.headers["x-should-retry"] == "true"
    assert not upstream.asked


def test_a_key_that_becomes_good_while_it_is_refused_runs_nothing(shared_edge: AnyEdge, upstream: Upstream) -> None:
    answers = iter([says("401 Unauthorized", REFUSED)])

    def second_time_good(seen: Seen, line: socket.socket) -> None:
        if (answer := next(answers, None)) is None:
            answer = ok if seen.method in ("GET", "POST") else says("405 Method Not Allowed", "{}")
        answer(seen, line)

    upstream.about_key = second_time_good
    with client(shared_edge.url) as http:
        reply = http.post("/v1/conversations", json={"items": []})
    assert reply.status_code == 401
    assert error(reply.text)["code"] == "invalid_api_key"
    assert not upstream.asked


@pytest.mark.parametrize(
    "path", ["/v1/completions", "/v1/files", "/tokenize", "/detokenize", "/api/generate", "/livez/../tokenize", "/x"]
)
def test_without_a_key_no_body_is_waited_for(shared_edge: AnyEdge, upstream: Upstream, path: str) -> None:
    told = head(f"POST {path}", f"Content-Length: {16 * ONE_MIB}")
    assert first(shared_edge.port, told + b"a" * ONE_MIB).status == 401
    assert not upstream.asked


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/livez", "/readyz", "/health", "/docs", "/openapi.json", "/console", "/sign-in"),
        *("/ui/common/api.js", "/ui/chat/index.js", "/ui/sign-in", "/ui/oidc/callback"),
    ],
)
def test_what_needs_no_key_is_there_and_takes_no_body(shared_edge: AnyEdge, upstream: Upstream, path: str) -> None:
    assert first(shared_edge.port, head(f"GET {path}")).status == 200
    assert [each.path for each in upstream.seen] == [path]
    _takes_no_body(shared_edge, "POST", path)
    assert len(upstream.seen) == 1


def test_a_browsers_question_takes_no_body(shared_edge: AnyEdge, upstream: Upstream) -> None:
    assert first(shared_edge.port, head("OPTIONS /v1/models?a=b%2Fc")).status == 200
    assert [each.path for each in upstream.seen] == ["/v1/models?a=b%2Fc"]
    _takes_no_body(shared_edge, "OPTIONS", "/v1/completions")
    assert len(upstream.seen) == 1


def _takes_no_body(edge: AnyEdge, method: str, path: str) -> None:
    for length in (f"Content-Length: {ONE_MIB}", "Transfer-Encoding: chunked"):
        part = b"a" * 2000 if "Content" in length else b"800\r\n" + b"a" * 2048 + b"\r\n"
        answer = first(edge.port, head(f"{method} {path}", length) + part)
        assert answer.status == 413
        assert "1 KiB" in str(error(answer.body)["message"])


def test_a_models_name_may_have_an_escaped_slash(shared_edge: AnyEdge, upstream: Upstream) -> None:
    with client(shared_edge.url) as http:
        assert http.get("/v1/models/maker%2Fmodel").status_code == 200
    [seen] = upstream.asked
    assert seen.path.replace("%2F", "/") == "/v1/models/maker/model"


def test_a_path_leads_nowhere_else(shared_edge: AnyEdge, upstream: Upstream) -> None:
    """No spelling of a path that needs a key is taken for one that needs none."""
    for path in ("//tokenize", "/livez/../tokenize", "/livez/%2e%2e/tokenize", "/livez/..%2ftokenize", "/docs/"):
        assert first(shared_edge.port, head(f"GET {path}")).status in (400, 401), path
    assert not upstream.asked


def test_too_large_a_body_is_told_the_limit(shared_edge: AnyEdge, upstream: Upstream) -> None:
    with client(shared_edge.url) as http:
        reply = http.post("/v1/completions", content=b"a" * (17 * ONE_MIB))
    assert reply.status_code == 413
    assert reply.headers["content-type"] == "application/json"
    assert error(reply.text)["code"] == "request_too_large"
    assert "16 MiB" in reply.text


def test_other_errors_have_the_apis_shape(shared_edge: AnyEdge, upstream: Upstream, kind: str) -> None:
    asked = {
        head("GET /v1/models", "X One: a"): 400,
        b"NOTHING\r\n\r\n": 400,
        head("GET /v1/models", f"X-One: {'a' * 100_000}"): 431,
    }
    if kind == "nginx":
        asked |= {
            head("GET /v1/models?" + "a" * 20_000): 414,
            head("TRACE /v1/models", key=KEY): 405,
            head("GET /edge/auth", key=KEY): 404,
            head("GET /edge/another"): 404,
        }
    for told, status in asked.items():
        answer = first(shared_edge.port, told)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/json"), told[:60]
        assert error(answer.body)["type"] == "invalid_request_error"
    assert not upstream.asked


def test_the_apis_root_is_no_redirect(shared_edge: AnyEdge, upstream: Upstream) -> None:
    with client(shared_edge.url) as http:
        assert http.get("/v1").status_code == 200
    assert [each.path for each in upstream.asked] == ["/v1"]


def test_a_slow_body_is_told_so(hasty_edge: AnyEdge, upstream: Upstream, kind: str) -> None:
    if kind == "nginx":
        pytest.skip("nginx only closes the connection")
    answer = first(hasty_edge.port, head("POST /v1/completions", "Content-Length: 9", key=KEY))
    assert answer.status == 408
    assert error(answer.body)["code"] == "request_timeout"


def test_a_stale_second_key_counts_only_where_a_gateway_looks_at_it(
    shared_edge: AnyEdge, upstream: Upstream, kind: str
) -> None:
    """A gateway takes X-API-Key at Anthropic's routes alone. Envoy asks about both headers everywhere."""
    if kind == "envoy":
        pytest.skip("Envoy cannot choose by the path which headers it asks about")
    with client(shared_edge.url) as http:
        for path in ("/v1/conversations", "/v1/messages", "/v1/messages/count_tokens?a", "/v1/auth"):
            http.post(path, json={}, headers={"X-API-Key": "stale"})
    about = [each.values("x-api-key") for each in upstream.seen if each.method == "GET"]
    assert about == [[], ["stale"], ["stale"], ["stale"]]


def test_envoy_has_a_bound_on_its_memory(make_edge: MakeEdge, kind: str) -> None:
    if kind == "nginx":
        pytest.skip("nginx holds bodies in files")

    def status() -> int:
        with client(edge.url) as http:
            reply = http.post("/v1/completions", json={})
        if reply.status_code == 503:
            assert error(reply.text)["code"] == "gateway_unavailable"
            assert reply.headers["x-should-retry"] == "true"
        return reply.status_code

    with Upstream() as upstream, contextlib.ExitStack() as stack:
        edge = make_edge(upstream.port, memory_bytes=64 * ONE_MIB)
        wait_for(lambda: status() == 200, "it takes requests")
        held = stack.enter_context(contextlib.ExitStack())
        for _ in range(6):
            with contextlib.suppress(ConnectionError, ssl.SSLError):  # the last ones are one too many
                line = held.enter_context(connected(edge.port))
                line.sendall(head("POST /v1/completions", f"Content-Length: {15 * ONE_MIB}", key=KEY))
                line.sendall(b"a" * (14 * ONE_MIB))
        wait_for(lambda: status() == 503, "it takes no more")
        held.close()
        wait_for(lambda: status() == 200, "it takes requests again")
