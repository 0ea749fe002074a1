"""A server under a path: the prefix is believed from the setting and from our own proxies, and from nobody else."""

from typing import Any

import pytest
from starlette.types import Message

from axon.gateway.http.prefix import inside, is_https, prefix_of, redirect
from axon.runtime.path_prefix import is_prefix


def make_scope(path: str = "/", scheme: str = "http", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http", "path": path, "scheme": scheme, "headers": named}


@pytest.mark.parametrize("text", ["/axon", "/a/b-c/d_e.f~1"])
def test_a_prefix_is_made_of_plain_segments(text: str) -> None:
    assert is_prefix(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "axon", "/axon/", "//evil.example", "/a//b", "/a b", "/a;Path=/", "/a\r\nb", "/é", "/..", "/a/../b"),
        *("/./.", "/" + "a" * 300, "/a?b", "/a%2f"),
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert not is_prefix(text)


@pytest.mark.parametrize(
    ("path", "left"),
    [("/axon/", "/"), ("/axon/v1/models", "/v1/models"), ("/v1/models", "/v1/models"), ("/axon2/", "/axon2/")],
)
def test_the_prefix_is_cut_off_where_a_proxy_left_it(path: str, left: str) -> None:
    scope = make_scope(path)
    assert inside(scope, "/axon")
    assert scope["path"] == left


async def test_the_prefix_without_its_slash_is_sent_on_to_the_one_with_it() -> None:
    assert not inside(make_scope("/axon"), "/axon")
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await redirect("/axon", send)
    assert sent[0]["status"] == 308
    assert (b"location", b"/axon/") in sent[0]["headers"]


def test_a_forwarded_prefix_is_believed_from_our_own_proxy_alone() -> None:
    scope = make_scope(x_forwarded_prefix="/axon/")
    assert prefix_of(scope, path_prefix="", num_proxies=0) == ""
    assert prefix_of(scope, path_prefix="", num_proxies=1) == "/axon"
    assert prefix_of(scope, path_prefix="/set", num_proxies=1) == "/set"


@pytest.mark.parametrize("said", ["//evil.example", "/a; Domain=evil.example", "javascript:x", ""])
def test_a_forwarded_prefix_that_is_none_is_ignored(said: str) -> None:
    assert prefix_of(make_scope(x_forwarded_prefix=said), path_prefix="", num_proxies=1) == ""


def test_the_nearest_proxy_has_the_last_word() -> None:
    assert prefix_of(make_scope(x_forwarded_prefix="/forged, /axon"), path_prefix="", num_proxies=1) == "/axon"


def test_https_is_known_by_the_connection_our_proxy_or_the_browser() -> None:
    assert is_https(make_scope(scheme="https"), num_proxies=0)
    assert is_https(make_scope(origin="https://gpu-box"), num_proxies=0)
    assert is_https(make_scope(x_forwarded_proto="https"), num_proxies=1)
    assert not is_https(make_scope(x_forwarded_proto="https"), num_proxies=0)
    assert not is_https(make_scope(x_forwarded_proto="http"), num_proxies=1)
    assert not is_https(make_scope(), num_proxies=1)
