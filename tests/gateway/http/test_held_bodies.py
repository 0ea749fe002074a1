"""The count of the bodies' bytes: what it refuses, and that it comes back to nothing whatever becomes of a request."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from axon.errors import LimitReached, Overloaded, TooLarge
from axon.gateway.config import GatewayConfig
from axon.gateway.http.body import Bodies
from axon.gateway.http.errors import ClientLeft, Timeout
from axon.gateway.http.held_bodies import HeldBodies, HeldBody, release_body

CONFIG = GatewayConfig(max_body_bytes=100, max_held_body_bytes=250, max_tenant_body_bytes=150, body_timeout_s=0.05)


def test_a_tenant_beyond_its_own_bound_is_refused_and_the_others_are_not() -> None:
    bodies = HeldBodies(max_bytes=250, max_tenant_bytes=150)
    bodies.take("a", 150)
    with pytest.raises(LimitReached) as refused:
        bodies.take("a", 1)
    assert (refused.value.code, refused.value.retry_after_s) == ("body_bytes_exceeded", 1.0)
    bodies.take("b", 100)
    with pytest.raises(Overloaded):
        bodies.take("b", 1)
    assert bodies.num_bytes == 250
    bodies.give("a", 150)
    bodies.take("b", 1)


def test_a_body_is_given_back_once() -> None:
    bodies = HeldBodies(max_bytes=250, max_tenant_bytes=150)
    first, second = HeldBody(bodies, "a"), HeldBody(bodies, "a")
    first.add(40)
    first.add(10)
    second.add(5)
    first.release()
    first.release()
    assert bodies.num_bytes == 5
    second.release()
    assert (bodies.num_bytes, bodies._by_tenant) == (0, {})


def asked(parts: Sequence[bytes], tenant: str = "a", *, then: str = "end") -> Request:
    """A request whose body comes in these parts and then ends, stays away, or has lost its client."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        if then == "nothing":
            await asyncio.Event().wait()
        return {"type": "http.disconnect"} if then == "left" else {"type": "http.request", "body": b""}

    return Request({"type": "http", "headers": [], "axon.identity": SimpleNamespace(tenant=tenant)}, receive)


@pytest.fixture
def bodies() -> Any:
    made = Bodies(CONFIG)
    yield made
    made.close()


async def test_a_body_counts_until_it_is_released(bodies: Bodies) -> None:
    request = asked([b"x" * 60, b"y" * 40])
    assert len(await bodies.read(request)) == 100
    with pytest.raises(LimitReached):
        await bodies.read(asked([b"x" * 51]))
    assert await bodies.read(asked([b"x" * 51], "b")) == b"x" * 51
    release_body(request.scope)
    assert len(await bodies.read(asked([b"x" * 100]))) == 100


async def test_all_tenants_together_have_a_bound(bodies: Bodies) -> None:
    for tenant in ("a", "b"):
        await bodies.read(asked([b"x" * 100], tenant))
    with pytest.raises(Overloaded):
        await bodies.read(asked([b"x" * 100], "c"))


@pytest.mark.parametrize(
    ("parts", "then", "error"),
    [
        ([b"x" * 60], "left", ClientLeft),
        ([b"x" * 60], "nothing", Timeout),
        ([b"x" * 60, b"x" * 60], "end", TooLarge),
        ([], "left", ClientLeft),
    ],
)
async def test_whatever_becomes_of_a_request_its_body_is_given_back(
    bodies: Bodies, parts: list[bytes], then: str, error: type[Exception]
) -> None:
    request = asked(parts, then=then)
    with pytest.raises(error):
        await bodies.read(request)
    release_body(request.scope)
    assert bodies._held.num_bytes == 0


async def test_a_request_without_a_body_has_nothing_to_give_back(bodies: Bodies) -> None:
    release_body(asked([]).scope)
    assert bodies._held.num_bytes == 0


async def test_one_body_of_the_largest_size_is_always_taken() -> None:
    strict = Bodies(GatewayConfig(max_body_bytes=100, max_held_body_bytes=10, max_tenant_body_bytes=1))
    try:
        assert len(await strict.read(asked([b"x" * 100]))) == 100
    finally:
        strict.close()
