"""Keys of every kind, put straight into a server's store, and every way to send one wrongly."""

import asyncio
import base64
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

from axon.bootstrap.services import load_pepper, open_store
from axon.domain.tenants.key import HOLDER, Key, Scope, _checksum, digest, new_key_text
from axon.domain.tenants.tenant import Tenant
from axon.settings import Settings
from tests.journeys.server import Server

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """The texts of keys; ``mine`` and ``foreign`` are good ones, of two tenants."""

    mine: str
    foreign: str
    revoked: str
    expired: str
    suspended: str
    """Of a tenant that is."""
    scopeless: str
    reader: str
    """May read and nothing else."""
    asker: str
    """May ask models and nothing else."""
    versioner: str
    """May name versions, and ask nothing."""
    admin: str
    """May administer and nothing else."""


def make_keys(server: Server, pepper: str = "") -> Keyring:
    """Keys of ``tenant-a`` (``mine`` and all the crippled ones) and of ``tenant-b``."""
    return asyncio.run(_make_keys(Settings(data_dir=server.data_dir, pepper=pepper)))


async def _make_keys(settings: Settings) -> Keyring:
    pepper, now = load_pepper(settings), time.time()
    async with AsyncExitStack() as stack:
        store = await open_store(settings, stack)

        async def make(tenant: str = "tenant-a", *scopes: Scope, expires_at: float | None = None) -> str:
            parsed, text = new_key_text()
            await store.keys.add(
                Key(
                    id=parsed.id,
                    tenant=tenant,
                    digest=digest(pepper, parsed.secret),
                    scopes=frozenset(scopes),
                    created_at=now,
                    expires_at=expires_at,
                )
            )
            return text

        for tenant in ("tenant-a", "tenant-b"):
            await store.tenants.add(Tenant(id=tenant, created_at=now))
        await store.tenants.add(Tenant(id="tenant-s", created_at=now, suspended_at=now))
        revoked = await make("tenant-a", *HOLDER)
        await store.keys.revoke(revoked[4:12], at=now)
        return Keyring(
            mine=await make("tenant-a", *HOLDER),
            foreign=await make("tenant-b", *HOLDER),
            revoked=revoked,
            expired=await make("tenant-a", *HOLDER, expires_at=now - 1),
            suspended=await make("tenant-s", *HOLDER, Scope.ADMIN),
            scopeless=await make("tenant-a"),
            reader=await make("tenant-a", Scope.READ),
            asker=await make("tenant-a", Scope.INFERENCE),
            versioner=await make("tenant-a", Scope.VERSIONS),
            admin=await make("tenant-a", Scope.ADMIN),
        )


def bearer(key: str) -> Headers:
    return [("Authorization", f"Bearer {key}")]


def wrong_ways(keys: Keyring, *, takes_api_key: bool = False) -> dict[str, Headers]:
    """What must open nothing, by its name. The key in most of them is a good one: it is sent in the wrong way.

    ``takes_api_key``: the route takes a key in an ``X-API-Key`` header too, as Anthropic's clients send it.
    """
    good = keys.mine
    forged = good[:13] + keys.foreign[13:-6]
    other = [("Api-Key", good), ("Proxy-Authorization", f"Bearer {good}")]
    wrong = {
        "nothing": [],
        "empty": [("Authorization", "")],
        "a scheme alone": [("Authorization", "Bearer")],
        "no scheme": [("Authorization", good)],
        "another scheme": [("Authorization", f"Token {good}")],
        "a digest": [("Authorization", f'Digest username="{good}"')],
        "the scheme twice": [("Authorization", f"Bearer Bearer {good}")],
        "two headers": [*bearer(good), *bearer(good)],
        "two tenants": [*bearer(good), *bearer(keys.foreign)],
        "two in one header": [("Authorization", f"Bearer {good}, Bearer {good}")],
        "another header": other if takes_api_key else [("X-API-Key", good), *other],
        "a cookie": [("Cookie", f"Authorization=Bearer {good}; api_key={good}")],
        "a name for a key": [("X-Axon-Tenant", "tenant-a"), ("X-Axon-Key-Id", good[4:12])],
        "one character less": bearer(good[:-1]),
        "one character more": bearer(good + "0"),
        "in capitals": bearer(good.upper()),
        "unknown": bearer(new_key_text()[1]),
        "another's secret": bearer(forged + _checksum(forged)),
        "a wildcard": bearer("axk_%_%"),
        "revoked": bearer(keys.revoked),
        "expired": bearer(keys.expired),
    }
    if takes_api_key:
        wrong |= {
            "a scheme in the other header": [("X-API-Key", f"Bearer {good}")],
            "the other header twice": [("X-API-Key", good), ("X-API-Key", good)],
            "two tenants in two headers": [*bearer(good), ("X-API-Key", keys.foreign)],
            "unknown in the other header": [("X-API-Key", new_key_text()[1])],
            "revoked in the other header": [("X-API-Key", keys.revoked)],
            "an empty other header": [("X-API-Key", "")],
        }
    return wrong


def basic(key: str) -> Headers:
    """As a browser sends it."""
    return [("Authorization", "Basic " + base64.b64encode(f"me:{key}".encode()).decode())]
