"""An OpenID Connect issuer over HTTP: its description, its keys, and the exchange of a code. Knows no session."""

import asyncio
from collections.abc import Mapping
from typing import Final, TypeVar
from urllib.parse import urlencode

import httpx
import msgspec

from axon.adapters.oidc.id_token import PublicKeys, checked_claims
from axon.errors import DependencyDown, Unauthenticated
from axon.runtime.clock import Clock

T = TypeVar("T")
CODE: Final = "issuer_unavailable"
_DEADLINE_S: Final = 10.0
_MAX_BYTES: Final = 1 << 20
_DESCRIPTION_S: Final = 3600.0
"""The issuer's description is used for this long."""
_KEYS_S: Final = 600.0
"""The issuer's keys are used for this long."""
_FAILURE_S: Final = 2.0
"""For this long after it failed, the issuer is not asked for its description again."""
_LEAST_KEYS_S: Final = 30.0
"""An unknown key is asked for at most this often, so that forged tokens make no traffic."""


class _Description(msgspec.Struct, frozen=True):
    """What the issuer says of itself (OpenID Connect Discovery)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class OidcIssuer:
    """One issuer, as a client that is registered there."""

    def __init__(
        self, issuer: str, clock: Clock, *, client_id: str, secret: str, redirect_url: str, scope: str
    ) -> None:
        self._issuer, self._clock = issuer, clock
        self._client_id, self._secret = client_id, secret
        self._redirect_url, self._scope = redirect_url, scope
        # Read from disk once: it takes 40 ms, in which the process serves nobody.
        self._tls = httpx.create_ssl_context(trust_env=False) if issuer.startswith("https:") else False
        self._describing = asyncio.Lock()
        self._failed: tuple[float, DependencyDown] | None = None
        self._description: tuple[float, _Description] | None = None
        self._keys: tuple[float, PublicKeys] | None = None

    async def address(self, *, state: str, nonce: str, challenge: str) -> str:
        asked = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._redirect_url,
            "scope": self._scope,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = (await self._described()).authorization_endpoint
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"

    async def claims(self, code: str, *, verifier: str, nonce: str) -> Mapping[str, object]:
        token = await self._exchanged(code, verifier)
        keys = await self._public_keys(token)
        return checked_claims(
            token, keys, issuer=self._issuer, client_id=self._client_id, nonce=nonce, now=self._clock.now()
        )

    async def _exchanged(self, code: str, verifier: str) -> str:
        """Exchanges the code for the token that says who it is."""
        description = await self._described()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_url,
            "client_id": self._client_id,
            "code_verifier": verifier,
        }
        login = None
        if self._secret and "client_secret_basic" in description.token_endpoint_auth_methods_supported:
            login = httpx.BasicAuth(urlencode({"": self._client_id})[1:], urlencode({"": self._secret})[1:])
        elif self._secret:
            form["client_secret"] = self._secret
        status, content = await self._asked("POST", description.token_endpoint, form, login)
        if 400 <= status < 500:
            raise Unauthenticated("The issuer did not take the code; sign in again.", code="oidc_code_refused")
        if status != 200:
            raise DependencyDown(f"The issuer answers with {status}.", code=CODE)
        return _decoded(content, _Tokens).id_token

    async def _described(self) -> _Description:
        """The issuer's description; asked for once, however many people sign in at the same time."""
        async with self._describing:
            now = self._clock.monotonic()
            if self._description is not None and self._description[0] > now:
                return self._description[1]
            if self._failed is not None and self._failed[0] > now:
                raise DependencyDown(self._failed[1].message, code=CODE)
            try:
                description = await self._asked_description()
            except DependencyDown as error:
                self._failed = (self._clock.monotonic() + _FAILURE_S, error)
                raise
            self._description = (self._clock.monotonic() + _DESCRIPTION_S, description)
            return description

    async def _asked_description(self) -> _Description:
        found = await self._read(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        description = _decoded(found, _Description)
        if description.issuer != self._issuer:
            raise DependencyDown(f"The issuer calls itself {description.issuer!r}, not {self._issuer!r}.", code=CODE)
        scheme = httpx.URL(self._issuer).scheme
        ends = (description.authorization_endpoint, description.token_endpoint, description.jwks_uri)
        if any(httpx.URL(each).scheme != scheme for each in ends):
            raise DependencyDown(f"The issuer names an address that is not {scheme}.", code=CODE)
        return description

    async def _public_keys(self, token: str) -> PublicKeys:
        """The issuer's keys; asked for again when they are old, or the token's is not among them."""
        now = self._clock.monotonic()
        if self._keys is not None:
            read_at, keys = self._keys
            age_s = now - read_at
            if age_s < _LEAST_KEYS_S or (age_s < _KEYS_S and keys.has_key_of(token)):
                return keys
        content = await self._read((await self._described()).jwks_uri)
        try:
            keys = PublicKeys(content)
        except ValueError as error:
            raise DependencyDown("The issuer's keys cannot be read.", code=CODE) from error
        self._keys = (now, keys)
        return keys

    async def _read(self, url: str) -> bytes:
        status, content = await self._asked("GET", url)
        if status != 200:
            raise DependencyDown(f"The issuer answers with {status}.", code=CODE)
        return content

    async def _asked(
        self, method: str, url: str, form: Mapping[str, str] | None = None, login: httpx.BasicAuth | None = None
    ) -> tuple[int, bytes]:
        """The status and the body of an answer, without redirects and within the bounds."""
        content = bytearray()
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        try:
            async with (
                asyncio.timeout(_DEADLINE_S),
                httpx.AsyncClient(timeout=_DEADLINE_S, trust_env=False, verify=self._tls) as client,
                client.stream(method, url, data=form, headers=headers, auth=login) as answer,
            ):
                async for chunk in answer.aiter_raw(1 << 16):
                    content += chunk
                    if len(content) > _MAX_BYTES:
                        raise DependencyDown("The issuer's answer is too long.", code=CODE)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise DependencyDown("The issuer does not answer.", code=CODE) from error
        return answer.status_code, bytes(content)


def _decoded(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DependencyDown("The issuer's answer makes no sense.", code=CODE) from error
