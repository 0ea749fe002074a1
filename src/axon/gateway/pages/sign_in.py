"""Signing in: a key or a one-time code is exchanged for a web session. Knows no route and no page."""

import structlog
from starlette.types import Scope

from axon.errors import AxonError, Unauthenticated
from axon.gateway.http.auth import Authenticator, Identity
from axon.gateway.http.guess_limit import GuessLimit
from axon.gateway.http.local import is_over_loopback
from axon.gateway.pages.web_sessions import WebSessions
from axon.tenants.one_time_codes import OneTimeCodes

_logger = structlog.get_logger("axon.gateway")


class SignIn:
    """Checks who signs in and opens the session. Wrong keys and codes count against the client's address."""

    def __init__(
        self, authenticator: Authenticator, sessions: WebSessions, codes: OneTimeCodes, guesses: GuessLimit
    ) -> None:
        self._authenticator, self._sessions = authenticator, sessions
        self._codes, self._guesses = codes, guesses

    async def with_key(self, text: str, *, address: str) -> tuple[Identity, str]:
        """Returns who signed in with a key, and the value of the cookie; raises as ``Authenticator.identify`` does."""
        return await self._opened(await self._authenticator.identify_text(text, address=address), "key")

    async def with_code(self, code: str, scope: Scope, *, address: str) -> tuple[Identity, str]:
        """Returns who signed in with a one-time code, and the value of the cookie.

        Raises ``Unauthenticated`` if the code is wrong, over or used before, or comes from another machine, and
        ``LimitReached`` if the address has sent too many wrong ones.
        """
        self._guesses.check(address)
        key_id = await self._codes.redeem(code) if is_over_loopback(scope) else None
        if key_id is None:
            self._guesses.note(address)
            raise Unauthenticated(
                "This link is used or older than a minute, or was opened on another machine. Sign in with your key.",
                code="invalid_code",
            )
        return await self._opened(await self._authenticator.identify_id(key_id, address=address), "code")

    async def with_person(self, key_id: str, user: str, *, address: str) -> tuple[Identity, str]:
        """Returns as whom a person signed in whom an issuer has named, and the value of the cookie; raises as
        ``Authenticator.identify`` does."""
        return await self._opened(await self._authenticator.identify_id(key_id, address=address), "oidc", user)

    def check(self, address: str) -> None:
        """Raises ``LimitReached`` if the address has sent too many wrong keys, codes or attempts."""
        self._guesses.check(address)

    def guessed(self, address: str) -> None:
        """Counts a wrong attempt against the address."""
        self._guesses.note(address)

    def refused(self, error: AxonError, way: str) -> None:
        """Logs that somebody could not sign in."""
        _logger.warning("sign_in.refused", way=way, code=error.code, problem=error.message)

    async def _opened(self, identity: Identity, way: str, user: str = "") -> tuple[Identity, str]:
        value = await self._sessions.open(identity.key_id, user=user)
        _logger.info(
            "sign_in.accepted", way=way, by_key=identity.key_id, by_tenant=identity.tenant, subject=user or None
        )
        return identity, value
