"""Web sessions: who is signed in with a cookie, by the store behind a cache of one second. Knows no route."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from starlette.types import Scope

from axon.domain.tenants.web_session import (
    WebSession,
    csrf_token,
    end_of,
    is_cookie_value,
    new_cookie_value,
    session_id,
)
from axon.errors import DependencyDown, Unauthenticated
from axon.gateway.config import GatewayConfig
from axon.gateway.http.auth import Authenticator, Identity
from axon.gateway.http.cookies import WEB_SESSION, check_csrf, check_own_page, only_value
from axon.ports.store import WebSessionStore
from axon.runtime.clock import Clock

_CACHE_S = 1.0
"""The store's answer about a session is used for this long; so one that ended elsewhere is refused after at most this
long."""
_CACHE_SIZE = 10_000
_RENEW_S = 60.0
"""A session that is used is renewed in the store at most this often."""


class WebSessions:
    """Opens, finds and ends sessions. While the store is down, a session that it confirmed before goes on."""

    def __init__(
        self, store: WebSessionStore, authenticator: Authenticator, clock: Clock, config: GatewayConfig
    ) -> None:
        self._store, self._authenticator, self._clock, self._config = store, authenticator, clock, config
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def open(self, key_id: str, *, user: str = "") -> str:
        """Opens a session and returns the value of its cookie, which is kept nowhere."""
        value, now = new_cookie_value(), self._clock.now()
        session = WebSession(
            id=session_id(value), key_id=key_id, user=user, created_at=now, ends_at=self._end(now, now)
        )
        await self._store.open(session, now=now, most=self._config.max_key_web_sessions)
        return value

    async def identify(self, scope: Scope, values: Sequence[str], *, address: str) -> Identity:
        """Returns who is signed in with the cookie.

        Raises ``Forbidden`` if another site's page made the request or its token is missing, and ``Unauthenticated`` if
        the session is over or its key has ended.
        """
        check_own_page(scope["headers"])
        value = only_value(values)
        session = await self._find(value)
        if session is None:
            raise Unauthenticated("You are signed out, or were away for too long; sign in again.", code="session_ended")
        identity = await self._authenticator.identify_id(session.key_id, address=address)
        check_csrf(scope["method"], scope["headers"], csrf_token(value))
        scope[WEB_SESSION] = value
        return replace(identity, user=session.user) if session.user else identity

    async def end(self, value: str) -> bool:
        """Ends the session of a cookie; False if there is none."""
        if not is_cookie_value(value):
            return False
        self._known.pop(session_id(value), None)
        return await self._store.end(session_id(value))

    async def _find(self, value: str) -> WebSession | None:
        if not is_cookie_value(value):
            return None
        name, now = session_id(value), self._clock.now()
        known = self._known.get(name)
        if known is None or known.until <= self._clock.monotonic():
            known = await self._look_up(name, known)
        if known is None or not known.session.valid(now):
            self._known.pop(name, None)
            return None
        return known.session

    async def _look_up(self, name: str, known: "_Known | None") -> "_Known | None":
        """Asks the store for a session, and lets one that is used last longer."""
        try:
            session = await self._store.find(name)
            if session is not None:
                session = await self._renewed(session)
        except DependencyDown:
            if known is None:
                raise
            session = known.session
        if session is None:
            return None
        found = self._known[name] = _Known(self._clock.monotonic() + _CACHE_S, session)
        self._known.move_to_end(name)
        if len(self._known) > _CACHE_SIZE:
            self._known.popitem(last=False)
        return found

    async def _renewed(self, session: WebSession) -> WebSession:
        now = self._clock.now()
        ends_at = self._end(session.created_at, now)
        if not session.valid(now) or ends_at - session.ends_at < min(_RENEW_S, self._config.web_session_idle_s / 10):
            return session
        await self._store.renew(session.id, ends_at=ends_at)
        return replace(session, ends_at=ends_at)

    def _end(self, created_at: float, now: float) -> float:
        config = self._config
        return end_of(created_at, now, idle_s=config.web_session_idle_s, lifetime_s=config.web_session_s)


@dataclass(frozen=True, slots=True)
class _Known:
    """A cache entry: the store's answer about a session."""

    until: float
    """The monotonic time in seconds at which the entry expires."""
    session: WebSession
