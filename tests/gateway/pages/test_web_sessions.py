"""Web sessions over time: they end by themselves, by their key and by the person, at every gateway."""

from typing import Any

import pytest

from axon.domain.tenants.web_session import WebSession, csrf_token, session_id
from axon.errors import DependencyDown, Forbidden, Unauthenticated
from axon.gateway.http.auth import Identity
from axon.gateway.pages.web_sessions import WebSessions
from tests.gateway.admin.office import Office


def make_scope(value: str = "", method: str = "GET", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return {"method": method, "headers": [(b"cookie", f"axon_session={value}".encode()), *named]}


async def who(sessions: WebSessions, value: str, method: str = "GET", **headers: str) -> Identity:
    return await sessions.identify(make_scope(value, method, **headers), [value], address="192.0.2.1")


async def key_id_of(office: Office) -> str:
    return (await office.key("ops"))[4:12]


async def is_signed_in(sessions: WebSessions, value: str) -> bool:
    try:
        await who(sessions, value)
    except Unauthenticated:
        return False
    return True


def beside(office: Office) -> WebSessions:
    """Those of another gateway, over the same store."""
    return WebSessions(office.store.web_sessions, office.authenticator, office.clock, office.config)


async def test_a_session_is_its_keys_at_every_gateway(office: Office) -> None:
    value = await office.web_sessions.open(await key_id_of(office), user="ada")
    for sessions in (office.web_sessions, beside(office)):
        found = await who(sessions, value)
        assert (found.tenant, len(found.scopes), found.user) == ("ops", 2, "ada")


async def test_the_store_keeps_no_value_of_a_cookie(office: Office) -> None:
    value = await office.web_sessions.open(await key_id_of(office))
    kept = await office.store.web_sessions.find(session_id(value))
    assert kept is not None
    assert value not in str(kept)
    assert csrf_token(value) not in str(kept)
    assert await office.store.web_sessions.find(value) is None


@pytest.mark.parametrize("value", ["", "x", "a" * 43, "\x00" * 43, "a" * 100_000, "' OR 1=1 --"])
async def test_a_made_up_value_is_nobody(office: Office, value: str) -> None:
    assert not await is_signed_in(office.web_sessions, value)
    assert not await office.web_sessions.end(value)


async def test_a_session_ends_after_a_time_without_use(office: Office) -> None:
    value, idle_s = await office.web_sessions.open(await key_id_of(office)), office.config.web_session_idle_s
    for _ in range(5):
        office.clock.advance(idle_s - 1)
        assert await is_signed_in(office.web_sessions, value)
    office.clock.advance(idle_s)
    assert not await is_signed_in(office.web_sessions, value)
    assert not await is_signed_in(beside(office), value)


async def test_a_session_that_is_always_used_ends_too(office: Office) -> None:
    value = await office.web_sessions.open(await key_id_of(office))
    for _ in range(int(office.config.web_session_s // 3600) - 1):
        office.clock.advance(3600)
        assert await is_signed_in(office.web_sessions, value)
    office.clock.advance(3600)
    assert not await is_signed_in(office.web_sessions, value)


async def test_use_at_one_gateway_counts_at_the_others(office: Office) -> None:
    value, idle_s = await office.web_sessions.open(await key_id_of(office)), office.config.web_session_idle_s
    other = beside(office)
    office.clock.advance(idle_s / 2)
    assert await is_signed_in(other, value)
    office.clock.advance(idle_s / 2 + 1)
    assert await is_signed_in(office.web_sessions, value)


async def test_signing_out_ends_it_here_at_once_and_elsewhere_within_a_second(office: Office) -> None:
    value, other = await office.web_sessions.open(await key_id_of(office)), beside(office)
    assert await is_signed_in(other, value)
    assert await office.web_sessions.end(value)
    assert not await is_signed_in(office.web_sessions, value)
    office.clock.advance(1.0)
    assert not await is_signed_in(other, value)


async def test_a_revoked_key_ends_its_sessions_within_a_second(office: Office) -> None:
    key_id = await key_id_of(office)
    value = await office.web_sessions.open(key_id)
    assert await is_signed_in(office.web_sessions, value)
    await office.keyring.revoke(key_id, actor="test")
    office.clock.advance(1.0)
    assert not await is_signed_in(office.web_sessions, value)


async def test_a_suspended_tenant_is_refused(office: Office) -> None:
    value = await office.web_sessions.open(await key_id_of(office))
    await office.tenancy.suspend("ops", actor="test")
    with pytest.raises(Forbidden) as refusal:
        await who(office.web_sessions, value)
    assert refusal.value.code == "tenant_suspended"


async def test_one_key_has_so_many_sessions_and_the_oldest_goes_first(office: Office) -> None:
    key_id, opened = await key_id_of(office), []
    for _ in range(office.config.max_key_web_sessions + 1):
        opened.append(await office.web_sessions.open(key_id))
        office.clock.advance(2.0)
    assert [await is_signed_in(office.web_sessions, value) for value in opened] == [False, True, True, True]


async def test_the_token_is_asked_for_of_whoever_is_signed_in(office: Office) -> None:
    value = await office.web_sessions.open(await key_id_of(office))
    with pytest.raises(Forbidden, match="x-axon-csrf"):
        await who(office.web_sessions, value, "POST")
    assert await who(office.web_sessions, value, "POST", x_axon_csrf=csrf_token(value))
    with pytest.raises(Forbidden, match="another site"):
        await who(office.web_sessions, value, sec_fetch_site="same-site")


class Away:
    """A store of sessions that goes away."""

    def __init__(self, office: Office) -> None:
        self._sessions, self.is_away = office.store.web_sessions, False
        self.open, self.end = self._sessions.open, self._sessions.end

    async def find(self, session_id: str) -> WebSession | None:
        self._check()
        return await self._sessions.find(session_id)

    async def renew(self, session_id: str, *, ends_at: float) -> None:
        self._check()
        await self._sessions.renew(session_id, ends_at=ends_at)

    def _check(self) -> None:
        if self.is_away:
            raise DependencyDown("The store does not answer.")


async def test_while_the_store_is_away_who_was_here_stays_and_nobody_comes_in(office: Office) -> None:
    store = Away(office)
    sessions = WebSessions(store, office.authenticator, office.clock, office.config)
    key_id = await key_id_of(office)
    here, new = await sessions.open(key_id), await sessions.open(key_id)
    assert await is_signed_in(sessions, here)
    store.is_away = True
    office.clock.advance(30.0)
    assert await is_signed_in(sessions, here)
    with pytest.raises(DependencyDown):
        await who(sessions, new)
    office.clock.advance(office.config.web_session_idle_s)
    assert not await is_signed_in(sessions, here)
