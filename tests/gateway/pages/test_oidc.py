"""An attempt to sign in by OpenID Connect: of one browser, once, in time, and for whoever something was granted to."""

from collections.abc import Mapping
from typing import Any

import pytest

from axon.adapters.live.memory.cache import MemoryCache
from axon.errors import AxonError, Forbidden, Unauthenticated
from axon.gateway.pages.oidc import ATTEMPT_S, OidcSignIn
from axon.runtime.clock import FakeClock
from axon.tenants.grants import Grant


class Agreeing:
    """An issuer that believes everything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.begun: list[dict[str, str]] = []
        self.ended: list[dict[str, str]] = []
        self.said: dict[str, Any] = {"sub": "person-1", "groups": ["staff"]}

    async def address(self, *, state: str, nonce: str, challenge: str) -> str:
        self.begun.append({"state": state, "nonce": nonce, "challenge": challenge})
        return "https://issuer.example/authorize"

    async def claims(self, code: str, *, verifier: str, nonce: str) -> Mapping[str, object]:
        self.ended.append({"code": code, "verifier": verifier, "nonce": nonce})
        return self.said


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def issuer() -> Agreeing:
    return Agreeing()


@pytest.fixture
def oidc(issuer: Agreeing, clock: FakeClock) -> OidcSignIn:
    return make_oidc(issuer, clock)


def make_oidc(issuer: Agreeing, clock: FakeClock, pepper: bytes = b"pepper") -> OidcSignIn:
    grants = [Grant("staff", "k0000001")]
    return OidcSignIn(issuer, MemoryCache(clock), clock, pepper=pepper, claim="groups", grants=grants)


async def refused(oidc: OidcSignIn, cookie: str, state: str) -> str:
    with pytest.raises(AxonError) as refusal:
        await oidc.end(cookie, state=state, code="code")
    return refusal.value.code


async def test_an_attempt_ends_where_it_was_begun(oidc: OidcSignIn, issuer: Agreeing) -> None:
    cookie, address = await oidc.begin("console")
    assert address == "https://issuer.example/authorize"
    person = await oidc.end(cookie, state=issuer.begun[0]["state"], code="code")
    assert (person.key_id, person.user, person.page) == ("k0000001", "person-1", "console")
    assert issuer.ended[0]["nonce"] == issuer.begun[0]["nonce"]
    secrets = {*issuer.begun[0].values(), issuer.ended[0]["verifier"], cookie}
    assert len(secrets) == 5
    assert all(len(each) >= 43 for each in secrets)


async def test_another_gateway_with_the_same_pepper_ends_it_too(
    oidc: OidcSignIn, issuer: Agreeing, clock: FakeClock
) -> None:
    cookie, _ = await oidc.begin("")
    assert (await make_oidc(issuer, clock).end(cookie, state=issuer.begun[0]["state"], code="c")).key_id == "k0000001"
    cookie, _ = await oidc.begin("")
    assert (
        await refused(make_oidc(issuer, clock, b"another"), cookie, issuer.begun[1]["state"]) == "oidc_attempt_refused"
    )


async def test_a_state_is_good_once(oidc: OidcSignIn, issuer: Agreeing) -> None:
    cookie, _ = await oidc.begin("")
    await oidc.end(cookie, state=issuer.begun[0]["state"], code="code")
    assert await refused(oidc, cookie, issuer.begun[0]["state"]) == "oidc_attempt_refused"
    assert len(issuer.ended) == 1, "the issuer was asked again"


async def test_a_state_is_good_in_the_browser_that_began_it_alone(oidc: OidcSignIn, issuer: Agreeing) -> None:
    mine, _ = await oidc.begin("")
    theirs, _ = await oidc.begin("")
    for cookie, state in (
        (mine, issuer.begun[1]["state"]),
        (theirs, issuer.begun[0]["state"]),
        ("", issuer.begun[0]["state"]),
        (mine, ""),
        (mine, "é"),
        (mine + "x", issuer.begun[0]["state"]),
        (mine.replace(".", ".9", 1), issuer.begun[0]["state"]),
        ("x" * 10_000, "x"),
        ("a.b.c", "x"),
    ):
        assert await refused(oidc, cookie, state) == "oidc_attempt_refused"
    assert issuer.ended == []


async def test_an_attempt_must_end_in_time(oidc: OidcSignIn, issuer: Agreeing, clock: FakeClock) -> None:
    cookie, _ = await oidc.begin("")
    clock.advance(ATTEMPT_S + 1)
    with pytest.raises(Unauthenticated, match="too long"):
        await oidc.end(cookie, state=issuer.begun[0]["state"], code="code")


@pytest.mark.parametrize("page", ["//evil.example", "https://evil.example", "console/../..", "javascript:x"])
async def test_nobody_is_sent_elsewhere_afterwards(oidc: OidcSignIn, issuer: Agreeing, page: str) -> None:
    cookie, _ = await oidc.begin(page)
    assert (await oidc.end(cookie, state=issuer.begun[0]["state"], code="code")).page == ""


async def test_whoever_has_no_grant_is_not_let_in(oidc: OidcSignIn, issuer: Agreeing) -> None:
    issuer.said = {"sub": "person-2", "groups": ["visitors"]}
    cookie, _ = await oidc.begin("")
    with pytest.raises(Forbidden) as refusal:
        await oidc.end(cookie, state=issuer.begun[0]["state"], code="code")
    assert refusal.value.code == "oidc_not_granted"
