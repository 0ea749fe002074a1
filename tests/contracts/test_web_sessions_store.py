"""The store's contract for web sessions: found by their digest, bounded for each key, and gone when they are over."""

import asyncio

from axon.domain.tenants.web_session import WebSession
from axon.ports.store import Store
from tests.contracts.backends import StoreBackend

LONG = 10_000.0


def make_session(
    name: str,
    *,
    key_id: str = "k0000001",
    at: float = 100.0,
    ends_at: float = 1000.0,
    user: str = "größer@example.com",
) -> WebSession:
    return WebSession(id=name, key_id=key_id, user=user, created_at=at, ends_at=ends_at)


async def open_all(store: Store, *sessions: WebSession, most: int = 10) -> None:
    for session in sessions:
        await store.web_sessions.open(session, now=session.created_at, most=most)


async def left(store: Store, *names: str) -> list[str]:
    return [name for name in names if await store.web_sessions.find(name) is not None]


async def test_a_session_comes_back_as_it_was_opened_at_every_gateway(stores: StoreBackend, store: Store) -> None:
    await open_all(store, make_session("a"))
    assert await (await stores.connect()).web_sessions.find("a") == make_session("a")


async def test_an_unknown_session_is_none_and_cannot_be_ended(store: Store) -> None:
    for name in ("a", "", "a\x00b"):
        assert await store.web_sessions.find(name) is None
        assert not await store.web_sessions.end(name)
        await store.web_sessions.renew(name, ends_at=LONG)
    assert await left(store, "a") == []


async def test_a_session_that_was_ended_is_gone_and_its_neighbour_stays(store: Store) -> None:
    await open_all(store, make_session("a"), make_session("b"))
    assert await store.web_sessions.end("a")
    assert not await store.web_sessions.end("a")
    await store.web_sessions.renew("a", ends_at=LONG)
    assert await left(store, "a", "b") == ["b"]


async def test_a_session_is_renewed_and_never_shortened(store: Store) -> None:
    await open_all(store, make_session("a", ends_at=1000.0))
    for asked, kept in ((2000.0, 2000.0), (1500.0, 2000.0)):
        await store.web_sessions.renew("a", ends_at=asked)
        found = await store.web_sessions.find("a")
        assert found is not None
        assert found.ends_at == kept


async def test_of_one_key_the_newest_stay_and_other_keys_are_not_counted(store: Store) -> None:
    others = [make_session(f"other-{number}", key_id="k0000002", at=1.0) for number in range(3)]
    await open_all(store, *others)
    await open_all(store, *(make_session(f"s{number}", at=100.0 + number) for number in range(5)), most=2)
    assert await left(store, *(f"s{number}" for number in range(5))) == ["s3", "s4"]
    assert await left(store, *(each.id for each in others)) == [each.id for each in others]


async def test_people_who_share_a_key_do_not_sign_each_other_out(store: Store) -> None:
    people = [make_session(f"p{number}", user=f"person-{number}", at=100.0 + number) for number in range(4)]
    await open_all(store, *people, most=1)
    assert await left(store, *(each.id for each in people)) == [each.id for each in people]
    await open_all(store, make_session("again", user="person-2", at=200.0), most=1)
    assert await left(store, *(each.id for each in people), "again") == ["p0", "p1", "p3", "again"]


async def test_opening_one_deletes_those_that_are_over(store: Store) -> None:
    await open_all(store, make_session("over", ends_at=200.0), make_session("just", ends_at=201.0))
    assert await left(store, "over", "just") == ["over", "just"]
    await store.web_sessions.open(make_session("new", key_id="k0000002", at=200.0), now=200.0, most=10)
    assert await left(store, "over", "just", "new") == ["just", "new"]


async def test_many_that_open_at_once_are_all_there(stores: StoreBackend, store: Store) -> None:
    other = await stores.connect()
    names = [f"s{number}" for number in range(12)]
    opening = [
        (other if number % 2 else store).web_sessions.open(make_session(name), now=100.0, most=50)
        for number, name in enumerate(names)
    ]
    await asyncio.gather(*opening)
    assert await left(store, *names) == names
