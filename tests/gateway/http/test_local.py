"""Requests from this machine itself: over loopback, to its name, through no proxy."""

from typing import Any

import pytest

from axon.gateway.http.local import is_over_loopback


def make_scope(client: str = "127.0.0.1", host: str = "127.0.0.1:8000", version: str = "1.1", **headers: str) -> Any:
    named = [(b"host", host.encode()), *((name.replace("_", "-").encode(), b"x") for name in headers)]
    return {"http_version": version, "client": (client, 1), "headers": named}


@pytest.mark.parametrize(
    ("client", "host"), [("127.0.0.1", "localhost:8000"), ("127.0.0.9", "127.0.0.1"), ("::1", "[::1]:8000")]
)
def test_loopback_is_here(client: str, host: str) -> None:
    assert is_over_loopback(make_scope(client, host))


@pytest.mark.parametrize(
    "scope",
    [
        make_scope("192.0.2.1"),
        make_scope("::ffff:192.0.2.1"),
        make_scope(""),
        make_scope(host="rebound.example:8000"),
        make_scope(host=""),
        make_scope(version="1.0"),
        *(
            make_scope(**{name: "x"})
            for name in ("forwarded", "x_forwarded_for", "x_forwarded_host", "x_real_ip", "via")
        ),
    ],
)
def test_whatever_may_come_from_elsewhere_is_not(scope: Any) -> None:
    assert not is_over_loopback(scope)
