"""The issuer over HTTP: what it says is believed only if all of it is right."""

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from axon.adapters.oidc.issuer import OidcIssuer
from axon.errors import DependencyDown, Unauthenticated
from axon.runtime.clock import FakeClock
from tests.oidc.issuer_double import CLIENT_ID, SECRET, IssuerDouble, running_issuer

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
NONCE = "nonce-of-this-attempt"


@pytest.fixture(scope="module")
def shared() -> Iterator[IssuerDouble]:
    with running_issuer(FakeClock().time) as double:
        yield double


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def double(shared: IssuerDouble) -> Iterator[IssuerDouble]:
    before = {name: value for name, value in vars(shared).items() if name not in ("asked", "forms", "logins")}
    kept = {name: value.copy() if isinstance(value, dict | list) else value for name, value in before.items()}
    for seen in (shared.asked, shared.forms, shared.logins):
        seen.clear()
    yield shared
    vars(shared).update(kept)


@pytest.fixture
def issuer(double: IssuerDouble, clock: FakeClock) -> OidcIssuer:
    return make_issuer(double, clock)


def make_issuer(double: IssuerDouble, clock: FakeClock, secret: str = SECRET) -> OidcIssuer:
    return OidcIssuer(
        double.url,
        clock,
        client_id=CLIENT_ID,
        secret=secret,
        redirect_url="http://127.0.0.1:8000/ui/oidc/callback",
        scope="openid email",
    )


async def came_back(issuer: OidcIssuer, double: IssuerDouble, *, nonce: str = NONCE) -> Any:
    address = await issuer.address(state="state", nonce=NONCE, challenge=CHALLENGE)
    return await issuer.claims(double.authorize(address), verifier=VERIFIER, nonce=nonce)


async def refused(issuer: OidcIssuer, double: IssuerDouble, **asked: Any) -> str:
    with pytest.raises(Unauthenticated) as refusal:
        await came_back(issuer, double, **asked)
    assert refusal.value.code == "oidc_token_refused"
    return refusal.value.message


async def test_what_is_right_is_believed(issuer: OidcIssuer, double: IssuerDouble) -> None:
    claims = await came_back(issuer, double)
    assert (claims["sub"], claims["email"]) == ("person-1", "ada@example.com")
    (form,), (login,) = double.forms, double.logins
    assert form["redirect_uri"] == "http://127.0.0.1:8000/ui/oidc/callback"
    assert "client_secret" not in form
    assert base64.b64decode(login.split()[1]).decode() == "axon-pages:s3cr3t%3A%2F%2B%25"


async def test_a_secret_goes_into_the_form_where_the_issuer_wants_it_there(
    issuer: OidcIssuer, double: IssuerDouble
) -> None:
    double.description = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    await came_back(issuer, double)
    assert (double.forms[0]["client_secret"], double.logins[0]) == (SECRET, "")


async def test_a_client_without_a_secret_has_none_to_send(double: IssuerDouble, clock: FakeClock) -> None:
    await came_back(make_issuer(double, clock, secret=""), double)
    assert ("client_secret" in double.forms[0], double.logins[0]) == (False, "")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"aud": "another-client"}, "InvalidAudienceError"),
        ({"aud": []}, "MissingRequiredClaimError"),
        ({"aud": None}, "MissingRequiredClaimError"),
        ({"aud": [CLIENT_ID, "another"]}, "another party"),
        ({"aud": [CLIENT_ID, "another"], "azp": "another"}, "another party"),
        ({"azp": "another"}, "another party"),
        ({"azp": 7}, "another party"),
        ({"iss": "http://127.0.0.1:1"}, "InvalidIssuerError"),
        ({"iss": None}, "MissingRequiredClaimError"),
        ({"nonce": "another"}, "another attempt"),
        ({"nonce": None}, "another attempt"),
        ({"nonce": 7}, "another attempt"),
        ({"exp": 1_700_000_000 - 61}, "expired"),
        ({"exp": None}, "MissingRequiredClaimError"),
        ({"exp": "never"}, "no number"),
        ({"iat": 1_700_000_000 + 61}, "not valid yet"),
        ({"nbf": 1_700_000_000 + 61}, "not valid yet"),
        ({"iat": None}, "MissingRequiredClaimError"),
        ({"sub": None}, "MissingRequiredClaimError"),
    ],
)
async def test_one_wrong_claim_is_enough(
    issuer: OidcIssuer, double: IssuerDouble, changed: dict[str, Any], reason: str
) -> None:
    double.changed = changed
    assert reason in await refused(issuer, double)


async def test_several_audiences_are_right_with_us_as_the_party(issuer: OidcIssuer, double: IssuerDouble) -> None:
    double.changed = {"aud": [CLIENT_ID, "another"], "azp": CLIENT_ID}
    assert (await came_back(issuer, double))["sub"] == "person-1"


async def test_the_clocks_may_differ_by_a_minute(issuer: OidcIssuer, double: IssuerDouble, clock: FakeClock) -> None:
    clock.advance(300 + 59)
    await came_back(issuer, double)
    clock.advance(2)
    assert "expired" in await refused(issuer, double)


async def test_a_token_of_another_attempt_is_not_ours(issuer: OidcIssuer, double: IssuerDouble) -> None:
    assert "another attempt" in await refused(issuer, double, nonce="the nonce of somebody else")


async def test_a_key_that_is_not_the_issuers_signs_nothing(issuer: OidcIssuer, double: IssuerDouble) -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    right = double.make_token(NONCE)
    claims = jwt.decode(right, options={"verify_signature": False})
    double.token = jwt.encode(claims, stranger, algorithm="RS256", headers={"kid": "one"})
    assert "InvalidSignatureError" in await refused(issuer, double)
    double.token = jwt.encode(claims, stranger, algorithm="RS256", headers={"kid": "two"})
    assert "its key is not the issuer's" in await refused(issuer, double)
    curve = ec.generate_private_key(ec.SECP256R1())
    double.token = jwt.encode(claims, curve, algorithm="ES256", headers={"kid": "one"})
    await refused(issuer, double)


async def test_a_token_chooses_no_other_way_to_be_signed(issuer: OidcIssuer, double: IssuerDouble) -> None:
    head, body, signature = double.make_token(NONCE).split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none","kid":"one"}').rstrip(b"=").decode()
    claims = jwt.decode(f"{head}.{body}.{signature}", options={"verify_signature": False})
    by_secret = jwt.encode(claims, SECRET * 8, algorithm="HS256", headers={"kid": "one"})
    changed = (
        base64.urlsafe_b64encode(json.dumps({**claims, "email": "eve@example.com"}).encode()).rstrip(b"=").decode()
    )
    for token in (
        f"{unsigned}.{body}.",
        by_secret,
        f"{head}.{changed}.{signature}",
        f"{head}.{body}.",
        "",
        "a.b.c",
        "é",
    ):
        double.token = token or " "
        await refused(issuer, double)


async def test_a_new_key_is_found_and_an_old_one_that_is_gone_counts_no_more(
    issuer: OidcIssuer, double: IssuerDouble, clock: FakeClock
) -> None:
    await came_back(issuer, double)
    double.keys["two"] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    double.signs_with = "two"
    assert "its key" in await refused(issuer, double), "its keys were read a moment ago"
    clock.advance(31)
    await came_back(issuer, double)
    assert double.asked.count("/keys") == 2
    double.shown_keys, double.signs_with = ["two"], "one"
    clock.advance(600)
    double.now = clock.time
    assert "its key" in await refused(issuer, double)


async def test_forged_tokens_make_no_traffic(issuer: OidcIssuer, double: IssuerDouble) -> None:
    double.header = {"kid": "made up"}
    for _ in range(5):
        await refused(issuer, double)
    assert double.asked.count("/keys") == 1
    assert double.asked.count("/.well-known/openid-configuration") == 1


async def test_a_code_that_the_issuer_does_not_take_is_the_persons_problem(
    issuer: OidcIssuer, double: IssuerDouble
) -> None:
    address = await issuer.address(state="state", nonce=NONCE, challenge=CHALLENGE)
    code = double.authorize(address)
    for wrong in ({"code": "made up", "verifier": VERIFIER}, {"code": code, "verifier": "w" * 43}):
        with pytest.raises(Unauthenticated) as refusal:
            await issuer.claims(wrong["code"], verifier=wrong["verifier"], nonce=NONCE)
        assert refusal.value.code == "oidc_code_refused"


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
@pytest.mark.parametrize(
    "broken",
    [(500, b"{}"), (302, b""), (200, b"no JSON"), (200, b"[]"), (200, b"[" * 5000), (200, b" " * (1 << 20) + b"{}")],
)
async def test_an_issuer_that_makes_no_sense_is_a_service_that_is_down(
    issuer: OidcIssuer, double: IssuerDouble, path: str, broken: tuple[int, bytes]
) -> None:
    double.broken = {path: broken}
    with pytest.raises(DependencyDown) as refusal:
        await came_back(issuer, double)
    assert refusal.value.code == "issuer_unavailable"


@pytest.mark.parametrize(
    "described",
    [
        {"issuer": "http://evil.example"},
        {"token_endpoint": "ftp://127.0.0.1/token"},
        {"jwks_uri": "https://127.0.0.1/keys"},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
async def test_an_issuer_that_describes_another_is_not_followed(
    issuer: OidcIssuer, double: IssuerDouble, described: dict[str, str]
) -> None:
    double.description = described
    with pytest.raises(DependencyDown):
        await issuer.address(state="state", nonce=NONCE, challenge=CHALLENGE)


async def test_nobody_at_home_is_told_as_such(clock: FakeClock) -> None:
    with running_issuer(time.time()) as gone:
        pass
    with pytest.raises(DependencyDown, match="does not answer"):
        await make_issuer(gone, clock).address(state="state", nonce=NONCE, challenge=CHALLENGE)


async def test_many_who_sign_in_at_once_ask_for_one_description(issuer: OidcIssuer, double: IssuerDouble) -> None:
    begun = [issuer.address(state=str(number), nonce=NONCE, challenge=CHALLENGE) for number in range(20)]
    assert len(set(await asyncio.gather(*begun))) == 20
    assert double.asked == ["/.well-known/openid-configuration"]


async def test_an_issuer_that_fails_is_not_asked_again_by_everybody(
    issuer: OidcIssuer, double: IssuerDouble, clock: FakeClock
) -> None:
    double.broken = {"/.well-known/openid-configuration": (500, b"")}
    begun = [issuer.address(state=str(number), nonce=NONCE, challenge=CHALLENGE) for number in range(20)]
    found = await asyncio.gather(*begun, return_exceptions=True)
    assert all(isinstance(each, DependencyDown) for each in found)
    assert len(double.asked) == 1
    double.broken = {}
    clock.advance(2.5)
    assert (await issuer.address(state="a", nonce=NONCE, challenge=CHALLENGE)).startswith(double.url)
