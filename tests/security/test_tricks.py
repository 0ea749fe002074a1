"""Paths, headers and framing that are meant to fool a server: none opens a door, and none is taken for two requests."""

import pytest

from tests.journeys.server import Server
from tests.security.keyring import Keyring
from tests.security.raw import Answer, answers, connected, request, talk

ASK = b'{"model": "echo", "prompt": "hello", "max_tokens": 1}'

WAYS_ROUND = [
    "//v1/models",
    "///v1/models",
    "/v1//models",
    "/v1/./models",
    "/./livez/../v1/models",
    "/livez/../v1/models",
    "/livez/..%2fv1/models",
    "/livez%2f..%2fv1/models",
    "/livez/%2e%2e/v1/models",
    "/livez%00/../v1/models",
    "/livez%00",
    "/livez;/v1/models",
    "/livez?/../v1/models",
    "/livez#/v1/models",
    "/livez/",
    "/livez/.",
    "/LIVEZ",
    "/v1/../admin",
    "/v1/%2e%2e/admin/keys",
    "/v1/..%5cadmin",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/v1%2fmodels",
    "/v1/models%2f",
    "/v1/models/..%2f..%2fopenapi.json",
    "/v1/models\\..\\..\\livez",
    "/%2flivez",
    "/metrics",
    "/v1/models?access_token=axk",
]


@pytest.mark.parametrize("target", WAYS_ROUND)
@pytest.mark.parametrize("host", ["axon", "axon.", "localhost:1", "livez"])
def test_no_way_round_a_path_gets_past_the_key(server: Server, target: str, host: str) -> None:
    [answer] = talk(server, request(target).replace(b"Host: axon", f"Host: {host}".encode()))
    probes = target.startswith(("/livez?", "/livez#"))
    assert answer.status == (200 if probes else 401), answer
    if probes:
        assert answer.body == b'{"status":"alive"}'


@pytest.mark.parametrize("target", WAYS_ROUND)
def test_no_way_round_a_path_gets_past_the_table_of_routes(server: Server, keys: Keyring, target: str) -> None:
    [answer] = talk(server, request(target, f"Authorization: Bearer {keys.mine}"))
    assert answer.status in (200, 404), answer
    assert b"root:" not in answer.body


HINTS = {
    "X-Forwarded-For": "127.0.0.1",
    "Forwarded": "for=127.0.0.1;host=axon;proto=https",
    "X-Real-IP": "127.0.0.1",
    "X-Axon-Tenant": "tenant-a",
    "X-Tenant-Id": "tenant-a",
    "OpenAI-Organization": "tenant-a",
    "OpenAI-Project": "tenant-a",
    "X-Original-URL": "/livez",
    "X-Rewrite-URL": "/livez",
    "X-Forwarded-Prefix": "/livez",
    "X-HTTP-Method-Override": "GET",
    "X-Method-Override": "HEAD",
    "X-Authenticated-User": "tenant-a",
    "X-Remote-User": "tenant-a",
}


@pytest.mark.parametrize("name", HINTS)
def test_a_header_that_proxies_write_is_nobodys_key(server: Server, name: str) -> None:
    for method in ("GET", "POST"):
        [answer] = talk(server, request("/v1/models", f"{name}: {HINTS[name]}", method=method))
        assert answer.status == 401
    [answer] = talk(server, request("/livez", "X-Original-URL: /v1/models", "X-Rewrite-URL: /v1/models"))
    assert answer.body == b'{"status":"alive"}'


@pytest.mark.parametrize("name", HINTS)
def test_a_header_that_proxies_write_makes_nobody_another_tenant(server: Server, keys: Keyring, name: str) -> None:
    """What one's own key opens, it opens as its own tenant: asked for another's conversation, it finds none."""
    own = f"Authorization: Bearer {keys.mine}"
    [made] = talk(server, request("/v1/conversations", own, method="POST", body=b"{}"))
    conversation = made.body.split(b'"')[3].decode()
    hint = f"{name}: {HINTS[name]}"
    foreign = f"Authorization: Bearer {keys.foreign}"
    [stranger] = talk(server, request(f"/v1/conversations/{conversation}", foreign, hint))
    assert stranger.status == 404
    [deleted] = talk(server, request(f"/v1/conversations/{conversation}", own, hint, method="POST", body=b"{}"))
    assert deleted.status == 400  # an update without its metadata, and no other method
    [owner] = talk(server, request(f"/v1/conversations/{conversation}", own, hint))
    assert owner.status == 200


def test_an_absolute_target_is_its_path_and_needs_a_key(server: Server, keys: Keyring) -> None:
    for target in ("http://axon/v1/models", "http://livez/v1/models", "http://user:pass@axon/v1/models"):
        [bare] = talk(server, request(target))
        assert bare.status == 401
        [held] = talk(server, request(target, f"Authorization: Bearer {keys.mine}"))
        assert held.status == 200
    for target in ("http://axon", "*", "axon:443"):
        method = "CONNECT" if ":" in target[4:] else "GET"
        assert [each.status for each in talk(server, request(target, method=method))] in ([400], [401], [404])


def test_http_1_0_needs_no_host(server: Server, keys: Keyring) -> None:
    for key, status in (("", 401), (f"Authorization: Bearer {keys.mine}\r\n", 200)):
        head = f"GET /v1/models HTTP/1.0\r\n{key}Connection: close\r\n\r\n".encode()
        [answer] = talk(server, head)
        assert answer.status == status


AGAINST_THE_RULES: dict[str, tuple[bytes, int, str]] = {
    "no host": (b"GET /livez HTTP/1.1\r\n\r\n", 400, "invalid_host"),
    "two hosts": (b"GET /livez HTTP/1.1\r\nHost: axon\r\nHost: other\r\n\r\n", 400, "invalid_host"),
    "two hosts in HTTP/1.0": (b"GET /livez HTTP/1.0\r\nHost: axon\r\nHost: axon\r\n\r\n", 400, "invalid_host"),
    "an empty host": (b"GET /livez HTTP/1.1\r\nHost:\r\n\r\n", 400, "invalid_host"),
    "a path for a host": (b"GET /livez HTTP/1.1\r\nHost: /livez\r\n\r\n", 400, "invalid_host"),
    "a line of HTTP/0.9": (b"GET /livez\r\n\r\n", 400, "invalid_http"),
    "HTTP/0.9": (b"GET /livez HTTP/0.9\r\nHost: axon\r\n\r\n", 400, "invalid_http"),
    "HTTP/2.0": (b"GET /livez HTTP/2.0\r\nHost: axon\r\n\r\n", 505, "http_version_not_supported"),
    "gzip before chunks": (
        b"GET /livez HTTP/1.1\r\nHost: axon\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        501,
        "unsupported_transfer_encoding",
    ),
    "chunks in HTTP/1.0": (
        b"GET /livez HTTP/1.0\r\nHost: axon\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "invalid_http",
    ),
    "an unknown expectation": (
        b"GET /livez HTTP/1.1\r\nHost: axon\r\nExpect: 200-ok\r\n\r\n",
        417,
        "unsupported_expectation",
    ),
}


@pytest.mark.parametrize("name", AGAINST_THE_RULES)
def test_what_the_rules_of_http_forbid_is_refused_in_the_shape_of_all_errors(server: Server, name: str) -> None:
    sent, status, code = AGAINST_THE_RULES[name]
    [answer] = talk(server, sent + request("/livez"))  # and the connection is closed: nothing after it is answered
    assert (answer.status, answer.code) == (status, code)
    assert answer.headers["connection"] == "close"


def test_an_expectation_that_can_be_met_is_met(server: Server, keys: Keyring) -> None:
    own = f"Authorization: Bearer {keys.mine}"
    found = talk(server, request("/v1/completions", own, "Expect: 100-continue", method="POST", body=ASK))
    assert [answer.status for answer in found] == [100, 200]


BAD_FRAMING: dict[str, tuple[bytes, ...]] = {
    "two lengths": (b"Content-Length: 0", b"Content-Length: 40"),
    "two lengths in one": (b"Content-Length: 0, 40",),
    "the same length twice": (b"Content-Length: 40", b"Content-Length: 40"),
    "a length with a sign": (b"Content-Length: +40",),
    "a negative length": (b"Content-Length: -40",),
    "a length in hex": (b"Content-Length: 0x28",),
    "a length beyond 64 bits": (b"Content-Length: 18446744073709551617",),
    "length and chunks": (b"Content-Length: 40", b"Transfer-Encoding: chunked"),
    "chunks and length": (b"Transfer-Encoding: chunked", b"Content-Length: 40"),
    "two encodings": (b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
    "an unknown encoding": (b"Transfer-Encoding: xchunked",),
    "chunks before another": (b"Transfer-Encoding: chunked, gzip",),
    "a blank before the colon": (b"Transfer-Encoding : chunked",),
    "a folded line": (b"Transfer-Encoding:", b" chunked"),
    "a vertical tab": (b"Transfer-Encoding: \x0bchunked",),
    "a bare carriage return": (b"X: a\rTransfer-Encoding: chunked",),
    "a NUL": (b"X: a\x00b",),
    "a NUL in a name": (b"X\x00: a",),
    "a name with a blank": (b"X Y: a",),
    "no name": (b": a",),
    "no colon": (b"hello",),
}


@pytest.mark.parametrize("name", BAD_FRAMING)
def test_a_request_whose_length_is_a_matter_of_opinion_is_one_request_at_most(
    server: Server, keys: Keyring, name: str
) -> None:
    """Behind a proxy that reads it otherwise, a second answer would be the answer to somebody else's request."""
    smuggled = b"0\r\n\r\n" + request("/livez")
    head = [b"POST /v1/completions HTTP/1.1", b"Host: axon", f"Authorization: Bearer {keys.mine}".encode()]
    found = talk(server, b"\r\n".join([*head, *BAD_FRAMING[name], b"", b""]) + smuggled)
    assert len(found) <= 1, found
    assert all(400 <= answer.status < 500 or answer.status == 501 for answer in found), found
    assert b"alive" not in b"".join(answer.body for answer in found)


def _chunked(keys: Keyring, trailers: bytes, *, with_key: bool, extension: bytes = b"") -> bytes:
    key = f"Authorization: Bearer {keys.mine}\r\n" if with_key else ""
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: axon\r\nConnection: close\r\n{key}Transfer-Encoding: chunked\r\n\r\n"
    )
    return head.encode() + b"%x%b\r\n%b\r\n0\r\n%b\r\n" % (len(ASK), extension, ASK, trailers)


def test_what_comes_after_a_body_is_no_header(server: Server, keys: Keyring) -> None:
    """Whoever stands before the server has looked at the headers, and at no trailer."""
    key = f"Authorization: Bearer {keys.mine}\r\n".encode()
    [answer] = talk(server, _chunked(keys, key, with_key=False))
    assert answer.status == 401
    [answer] = talk(server, _chunked(keys, key, with_key=True))
    assert answer.status == 200  # else the trailer would have been a second key
    [answer] = talk(server, _chunked(keys, b"X-Request-Id: smuggled\r\n", with_key=True))
    assert answer.headers["x-request-id"] != "smuggled"


@pytest.mark.parametrize("what", ["trailers", "one long trailer", "an extension of a chunk"])
def test_what_is_neither_header_nor_body_has_a_size_too(server: Server, keys: Keyring, what: str) -> None:
    most = 64 << 10
    trailers = {"trailers": b"a: b\r\n" * most, "one long trailer": b"a: " + b"b" * 6 * most + b"\r\n"}.get(what, b"")
    extension = b";a=" + b"b" * 6 * most if not trailers else b""
    found = talk(server, _chunked(keys, trailers, with_key=True, extension=extension))
    assert [answer.status for answer in found] in ([431], []), found  # whoever goes on sending may miss the word


def test_small_chunks_are_as_good_as_large_ones(server: Server, keys: Keyring) -> None:
    body = ASK[:-1] + b" " * 20_000 + b"}"
    head = _chunked(keys, b"", with_key=True).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    [answer] = talk(server, head + b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n")
    assert answer.status == 200, answer


def test_headers_of_any_number_are_bounded_by_their_size(server: Server, keys: Keyring) -> None:
    many = [f"X-{number}: a" for number in range(3000)]
    [answer] = talk(server, request("/v1/models", f"Authorization: Bearer {keys.mine}", *many))
    assert answer.status == 200
    found = talk(server, request("/v1/models", *[f"X-{number}: {'a' * 50}" for number in range(5000)]))
    assert [answer.status for answer in found] in ([431], [])


def test_line_ends_in_a_value_make_no_header(server: Server) -> None:
    for value in ("a\r\nX-Evil: 1", "a%0d%0aX-Evil: 1", "a\\r\\nX-Evil: 1"):
        for answer in talk(server, request("/livez", f"X-Request-Id: {value}")):
            assert "x-evil" not in answer.headers
    [answer] = talk(server, request("/v1/models%0d%0aX-Evil:%201"))
    assert "x-evil" not in answer.headers


def test_an_upgrade_is_not_heeded(server: Server, keys: Keyring) -> None:
    for protocol in ("websocket", "h2c"):
        upgrade = request("/v1/models", f"Upgrade: {protocol}").replace(b"Connection: close", b"Connection: Upgrade")
        with connected(server) as line:
            line.sendall(upgrade)
            [answer] = answers(line, most=1)
        assert answer.status == 401


def test_the_second_of_two_requests_in_one_piece_needs_its_own_key(server: Server, keys: Keyring) -> None:
    first = f"GET /v1/models HTTP/1.1\r\nHost: axon\r\nAuthorization: Bearer {keys.mine}\r\n\r\n".encode()
    found: list[Answer] = talk(server, first + request("/v1/models"))
    assert [answer.status for answer in found] == [200, 401]


def test_the_root_names_the_places_and_needs_no_key(server: Server) -> None:
    [answer] = talk(server, request("/"))
    assert answer.status == 200
    assert all(place in answer.body for place in (b"/v1", b"/docs", b"/readyz"))
    [posted] = talk(server, request("/", method="POST"))
    assert posted.status == 405


def test_no_error_repeats_a_long_name_whole(server: Server, keys: Keyring) -> None:
    own = f"Authorization: Bearer {keys.mine}"
    long = b"x" * 1_000_000
    for path, body in (
        ("/v1/completions", b'{"model": "%b", "prompt": "hello"}' % long),
        ("/v1/chat/completions", b'{"model": "%b", "messages": [{"role": "user", "content": "hello"}]}' % long),
        ("/v1/responses", b'{"model": "%b", "input": "hello"}' % long),
        ("/v1/responses", b'{"model": "echo", "input": "hello", "previous_response_id": "%b"}' % long),
        ("/v1/responses", b'{"model": "echo", "input": "hello", "metadata": {"%b": 1}}' % long),
        ("/v1/completions", b'{"model": "echo", "prompt": "hello", "logit_bias": {"%b": 1}}' % long),
    ):
        [answer] = talk(server, request(path, own, method="POST", body=body))
        assert 400 <= answer.status < 500
        assert len(answer.body) < 8000, path
    [answer] = talk(server, request("/v1/" + "x" * 30_000, own))
    assert (answer.status, len(answer.body) < 8000) == (404, True)
