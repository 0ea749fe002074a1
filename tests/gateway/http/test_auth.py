"""Key → tenant: every way in which a key can be wrong, one at a time."""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import replace

import pytest

from axon.domain.tenants.access import Access
from axon.domain.tenants.key import HOLDER, Key, Scope, _checksum, digest, new_key_text
from axon.domain.tenants.tenant import Limits, Plan, Tenant, Terms
from axon.errors import DependencyDown, Forbidden, LimitReached, Unauthenticated
from axon.gateway.http.auth import Authenticator, Identity
from axon.gateway.http.guess_limit import GuessLimit
from axon.runtime.clock import FakeClock

PEPPER = b"pepper"
DEFAULTS = Terms(requests_per_minute=600.0, concurrent=64)


class Keys:
    """A store of keys that counts how often it is asked."""

    def __init__(self) -> None:
        self.kept: dict[str, Key] = {}
        self.tenants: dict[str, Tenant] = {}
        self.plan: Plan | None = None
        self.num_asked = 0
        self.is_away = False
        self.pause: asyncio.Event | None = None

    async def add(self, key: Key) -> None:
        self.kept[key.id] = key

    async def access(self, key_id: str) -> Access | None:
        self.num_asked += 1
        if self.pause is not None:
            await self.pause.wait()
        if self.is_away:
            raise DependencyDown
        key = self.kept.get(key_id)
        if key is None:
            return None
        return Access(key=key, tenant=self.tenants.get(key.tenant, Tenant(id=key.tenant)), plan=self.plan)

    async def touch(self, used_at: Mapping[str, float]) -> None:
        pass

    async def revoke(self, key_id: str, *, at: float) -> bool:
        self.kept[key_id] = replace(self.kept[key_id], revoked_at=at)
        return True


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def door(keys: Keys, clock: FakeClock) -> Authenticator:
    return Authenticator(keys, PEPPER, clock, defaults=DEFAULTS)


async def make_key(
    keys: Keys,
    clock: FakeClock,
    tenant: str = "acme",
    lives_s: float | None = None,
    scopes: frozenset[Scope] = HOLDER,
) -> str:
    parsed, text = new_key_text()
    expires_at = None if lives_s is None else clock.now() + lives_s
    await keys.add(
        Key(
            id=parsed.id,
            tenant=tenant,
            digest=digest(PEPPER, parsed.secret),
            scopes=scopes,
            created_at=clock.now(),
            expires_at=expires_at,
        )
    )
    return text


def bearer(text: str) -> list[bytes]:
    return [f"Bearer {text}".encode()]


async def test_a_key_is_known_by_its_tenant(door: Authenticator, keys: Keys, clock: FakeClock) -> None:
    text = await make_key(keys, clock)
    assert await door.identify(bearer(text)) == Identity(text[4:12], "acme", HOLDER, DEFAULTS)


async def test_a_key_brings_its_scopes_and_the_terms_of_tenant_plan_and_server(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock, scopes=frozenset({Scope.READ}))
    keys.tenants["acme"] = Tenant(id="acme", limits=Limits(weight=3.0), place=4)
    keys.plan = Plan(name="default", limits=Limits(weight=2.0, requests_per_minute=60.0))
    who = await door.identify(bearer(text))
    assert who.scopes == {Scope.READ}
    assert who.terms == replace(DEFAULTS, weight=3.0, requests_per_minute=60.0, place=4)


async def test_a_suspended_tenants_key_is_forbidden_within_a_second_and_good_again_when_it_is_resumed(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock)
    await door.identify(bearer(text))
    keys.tenants["acme"] = Tenant(id="acme", suspended_at=clock.now())
    clock.advance(1.001)
    with pytest.raises(Forbidden, match="suspended"):
        await door.identify(bearer(text))
    del keys.tenants["acme"]
    clock.advance(1.001)
    await door.identify(bearer(text))


async def test_a_wrong_secret_does_not_learn_that_the_tenant_is_suspended(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock)
    keys.tenants["acme"] = Tenant(id="acme", suspended_at=clock.now())
    body = text[:20] + ("A" if text[20] != "A" else "B") + text[21:-6]
    with pytest.raises(Unauthenticated):
        await door.identify(bearer(body + _checksum(body)))


async def test_another_keys_secret_under_this_keys_id_is_refused(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    mine, other = await make_key(keys, clock), await make_key(keys, clock)
    body = mine[:13] + other[13:-6]
    forged = body + _checksum(body)
    with pytest.raises(Unauthenticated):
        await door.identify(bearer(forged))


async def test_one_changed_character_of_the_secret_is_refused_though_the_checksum_fits(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock)
    body = text[:20] + ("A" if text[20] != "A" else "B") + text[21:-6]
    with pytest.raises(Unauthenticated):
        await door.identify(bearer(body + _checksum(body)))


async def test_a_key_hashed_with_another_pepper_is_refused(keys: Keys, clock: FakeClock) -> None:
    text = await make_key(keys, clock)
    with pytest.raises(Unauthenticated):
        await Authenticator(keys, b"salt", clock).identify(bearer(text))


async def test_an_unknown_key_is_refused(door: Authenticator) -> None:
    with pytest.raises(Unauthenticated):
        await door.identify(bearer(new_key_text()[1]))


async def test_a_revoked_key_is_out_within_a_second(door: Authenticator, keys: Keys, clock: FakeClock) -> None:
    text = await make_key(keys, clock)
    await door.identify(bearer(text))
    await keys.revoke(text[4:12], at=clock.now())
    clock.advance(1.001)
    with pytest.raises(Unauthenticated, match="revoked"):
        await door.identify(bearer(text))


async def test_an_expired_key_is_refused_from_its_last_moment_on(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock, lives_s=10)
    clock.advance(9.9)
    await door.identify(bearer(text))
    clock.advance(0.1)
    with pytest.raises(Unauthenticated, match="expired"):
        await door.identify(bearer(text))


async def test_the_store_is_asked_once_a_second_for_a_busy_key(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock)
    for _ in range(50):
        await door.identify(bearer(text))
        clock.advance(0.1)
    assert keys.num_asked <= 6


async def test_many_requests_at_once_ask_the_store_once_and_one_that_leaves_disturbs_no_other(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock)
    keys.pause = asyncio.Event()
    asking = [asyncio.ensure_future(door.identify(bearer(text))) for _ in range(20)]
    await asyncio.sleep(0)
    asking[0].cancel()
    await asyncio.sleep(0)
    keys.pause.set()
    told = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(told[0], asyncio.CancelledError)
    assert {who.tenant for who in told[1:] if isinstance(who, Identity)} == {"acme"}
    assert keys.num_asked == 1


async def test_while_the_store_is_away_all_who_wait_for_an_unknown_key_hear_of_it_together(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock)
    keys.is_away = True
    told = await asyncio.gather(*(door.identify(bearer(text)) for _ in range(20)), return_exceptions=True)
    assert {type(error) for error in told} == {DependencyDown}
    assert keys.num_asked == 1
    keys.is_away = False
    await door.identify(bearer(text))


async def test_a_mistyped_key_does_not_reach_the_store(door: Authenticator, keys: Keys) -> None:
    with pytest.raises(Unauthenticated):
        await door.identify(bearer(new_key_text()[1][:-1] + "!"))
    assert keys.num_asked == 0


async def test_a_browsers_password_counts_only_where_pages_are_shown(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock)
    header = [b"Basic " + base64.b64encode(f"me:{text}".encode())]
    assert (await door.identify(header, basic=True)).tenant == "acme"
    with pytest.raises(Unauthenticated):
        await door.identify(header)


@pytest.mark.parametrize("headers", [[], [b""], [b"Bearer"], [b"Token x"], [b"Basic !!"], [b"Bearer \xff\xfe"]])
async def test_anything_but_one_bearer_is_refused(door: Authenticator, headers: list[bytes]) -> None:
    for basic in (False, True):
        with pytest.raises(Unauthenticated):
            await door.identify(headers, basic=basic)


async def test_two_authorizations_are_none(door: Authenticator, keys: Keys, clock: FakeClock) -> None:
    text = await make_key(keys, clock)
    with pytest.raises(Unauthenticated):
        await door.identify(bearer(text) * 2)


async def test_an_error_never_quotes_a_secret(door: Authenticator) -> None:
    text = new_key_text()[1]
    with pytest.raises(Unauthenticated) as refusal:
        await door.identify(bearer(text))
    assert text[13:30] not in refusal.value.message


async def test_a_key_that_live_knows_for_revoked_is_out_within_a_second_though_the_store_is_away(
    keys: Keys, clock: FakeClock
) -> None:
    revoked: set[str] = set()
    is_away = False

    async def is_revoked(key_id: str) -> bool:
        if is_away:
            raise DependencyDown
        return key_id in revoked

    door = Authenticator(keys, PEPPER, clock, revoked=is_revoked)
    text = await make_key(keys, clock)
    await door.identify(bearer(text))
    keys.is_away = True
    clock.advance(1.001)
    await door.identify(bearer(text))
    revoked.add(text[4:12])
    for _ in range(2):
        clock.advance(1.001)
        with pytest.raises(Unauthenticated, match="revoked"):
            await door.identify(bearer(text))
        is_away = True  # what was heard once stays


async def test_a_key_that_was_never_seen_is_neither_good_nor_bad_while_the_store_is_away(
    door: Authenticator, keys: Keys, clock: FakeClock
) -> None:
    text = await make_key(keys, clock)
    keys.is_away = True
    with pytest.raises(DependencyDown):
        await door.identify(bearer(text))


async def test_while_live_is_away_the_stores_word_counts(keys: Keys, clock: FakeClock) -> None:
    async def is_revoked(key_id: str) -> bool:
        raise DependencyDown

    text = await make_key(keys, clock)
    assert (await Authenticator(keys, PEPPER, clock, revoked=is_revoked).identify(bearer(text))).tenant == "acme"


async def test_an_unknown_key_is_looked_up_once_a_second(door: Authenticator, keys: Keys, clock: FakeClock) -> None:
    text = new_key_text()[1]
    for _ in range(20):
        with pytest.raises(Unauthenticated):
            await door.identify(bearer(text))
        clock.advance(0.1)
    assert keys.num_asked == 2


async def test_made_up_keys_drive_out_nobody_who_is_known(door: Authenticator, keys: Keys, clock: FakeClock) -> None:
    text = await make_key(keys, clock)
    await door.identify(bearer(text))
    for _ in range(10_001):
        with pytest.raises(Unauthenticated):
            await door.identify(bearer(new_key_text()[1]))
    assert len(door._unknown) == 10_000
    keys.is_away = True
    clock.advance(1.001)
    await door.identify(bearer(text))


class TestGuessing:
    @pytest.fixture
    def door(self, keys: Keys, clock: FakeClock) -> Authenticator:
        return Authenticator(keys, PEPPER, clock, guesses=GuessLimit(5, clock))

    async def guess(self, door: Authenticator, num: int, address: str = "192.0.2.1") -> None:
        for _ in range(num):
            with pytest.raises(Unauthenticated):
                await door.identify(bearer(new_key_text()[1]), address=address)

    async def test_who_guesses_too_often_is_told_to_wait_without_a_look_into_the_store(
        self, door: Authenticator, keys: Keys
    ) -> None:
        await self.guess(door, 5)
        num_asked = keys.num_asked
        with pytest.raises(LimitReached) as refusal:
            await door.identify(bearer(new_key_text()[1]), address="192.0.2.1")
        assert refusal.value.retry_after_s == pytest.approx(12.0)
        assert keys.num_asked == num_asked

    async def test_a_known_keys_id_does_not_help_the_guesser(
        self, door: Authenticator, keys: Keys, clock: FakeClock
    ) -> None:
        text = await make_key(keys, clock)
        await door.identify(bearer(text))
        await self.guess(door, 5)
        body = text[:20] + ("A" if text[20] != "A" else "B") + text[21:-6]
        with pytest.raises(LimitReached):
            await door.identify(bearer(body + _checksum(body)), address="192.0.2.1")

    async def test_a_key_that_was_good_a_moment_ago_stays_so_beside_a_guesser(
        self, door: Authenticator, keys: Keys, clock: FakeClock
    ) -> None:
        text = await make_key(keys, clock)
        await door.identify(bearer(text), address="192.0.2.1")
        await self.guess(door, 5)
        clock.advance(1.001)
        await door.identify(bearer(text), address="192.0.2.1")

    async def test_others_are_not_held_back(self, door: Authenticator, keys: Keys, clock: FakeClock) -> None:
        await self.guess(door, 5)
        await door.identify(bearer(await make_key(keys, clock)), address="192.0.2.2")

    async def test_mistyped_revoked_and_missing_keys_are_no_guesses(
        self, door: Authenticator, keys: Keys, clock: FakeClock
    ) -> None:
        text = await make_key(keys, clock)
        await keys.revoke(text[4:12], at=clock.now())
        for _ in range(10):
            for headers in (bearer(text[:-1] + "!"), bearer(text), []):
                with pytest.raises(Unauthenticated):
                    await door.identify(headers, address="192.0.2.1")


async def test_who_is_let_in_is_noted_as_used(keys: Keys, clock: FakeClock) -> None:
    used: list[str] = []
    door = Authenticator(keys, PEPPER, clock, used=used.append)
    text = await make_key(keys, clock)
    await door.identify(bearer(text))
    await keys.revoke(text[4:12], at=clock.now())
    clock.advance(1.001)
    with pytest.raises(Unauthenticated):
        await door.identify(bearer(text))
    assert used == [text[4:12]]
