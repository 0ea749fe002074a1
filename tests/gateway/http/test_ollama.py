"""Which requests belong to Ollama's API, and which of them come from a program on this machine."""

import pytest

from axon.errors import NotFound
from axon.gateway.http import ollama
from axon.gateway.http.refusal import refusal_of


def test_an_error_is_its_message() -> None:
    refusal = refusal_of(NotFound("No such model."), "/api/chat", "req_1")
    assert (refusal.status, refusal.body) == (404, b'{"error":"No such model."}')
    assert b'"code"' in refusal_of(NotFound("No such model."), "/v1/api/chat", "req_1").body


def _is_local(
    client: str = "127.0.0.1", host: str = "localhost:8000", http_version: str = "1.1", **headers: str
) -> bool:
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in {"host": host, **headers}.items()]
    return ollama.is_local({"client": (client, 1234), "headers": given, "http_version": http_version})


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]", "[::1]:8000", "LOCALHOST:1"]
)
@pytest.mark.parametrize("client", ["127.0.0.1", "::1", "127.8.8.8"])
def test_a_program_on_this_machine_is_local(client: str, host: str) -> None:
    assert _is_local(client, host)


@pytest.mark.parametrize("client", ["10.0.0.1", "::2", "", "localhost"])
def test_another_machine_is_not(client: str) -> None:
    assert not _is_local(client)


@pytest.mark.parametrize("host", ["example.com", "localhost.example.com:80", "", ":8000", "127.0.0.1.example.com"])
def test_a_page_whose_name_points_to_loopback_is_not(host: str) -> None:
    assert not _is_local(host=host)


@pytest.mark.parametrize("name", ["origin", "x_forwarded_for", "forwarded", "x_real_ip", "via", "authorization"])
def test_what_a_browser_or_a_proxy_sends_or_a_key_is_not(name: str) -> None:
    assert not _is_local(**{name: "http://localhost"})


def test_a_proxy_that_adds_no_header_but_speaks_http_1_0_is_not() -> None:
    assert not _is_local(host="127.0.0.1:8000", http_version="1.0")
