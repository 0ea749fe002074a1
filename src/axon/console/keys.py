"""``axon keys``: API keys straight in the store. Knows no server; a running one reads the same store."""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from axon.domain.key import Key, digest, new_key_text, parse_key
from axon.domain.tenant import Tenant
from axon.errors import Conflict, Misconfigured, NotFound

if TYPE_CHECKING:
    from axon.ports.store import Store
    from axon.settings import Settings

T = TypeVar("T")
_DAY_S = 86400.0


def create(settings: "Settings", *, tenant: str, name: str, expires_in_days: float | None, as_json: bool) -> None:
    """Makes a key. Its text alone goes to stdout, so that a script can catch it."""
    from axon.bootstrap.services import load_pepper

    if not tenant or not tenant.isprintable():
        raise Misconfigured("A tenant's name must be text that can be printed, and not empty.")
    now = time.time()
    parts, text = new_key_text()
    key = Key(
        id=parts.id,
        tenant=tenant,
        name=name,
        digest=digest(load_pepper(settings), parts.secret),
        created_at=now,
        expires_at=None if expires_in_days is None else now + expires_in_days * _DAY_S,
    )
    _in_store(settings, lambda store: _add(store, key))
    if as_json:
        print(json.dumps({**_facts(key, now), "key": text}))
        return
    print(f"Key {key.id} of tenant {tenant}. It is shown this once: only a hash is kept.", file=sys.stderr)
    print(text)


def show(settings: "Settings", *, as_json: bool) -> None:
    """Lists the keys."""
    now = time.time()
    listed = [_facts(key, now) for key in _in_store(settings, lambda store: store.keys.all())]
    if as_json:
        print(json.dumps(listed, indent=2))
        return
    if not listed:
        print("There are no keys yet. Make one with `axon keys create`.", file=sys.stderr)
        return
    from axon.console.tables import print_table

    columns = ("id", "tenant", "name", "created", "expires", "state")
    print_table(columns, [[facts[column] or "-" for column in columns] for facts in listed])


def revoke(settings: "Settings", key_id: str) -> None:
    """Ends a key; the whole key is taken for its id as well."""
    parts = parse_key(key_id)
    key_id = parts.id if parts else key_id
    if not _in_store(settings, lambda store: store.keys.revoke(key_id, at=time.time())):
        raise NotFound(f"There is no key {key_id}. `axon keys list` shows them.")
    print(f"Key {key_id} is revoked.")


def _in_store(settings: "Settings", act: Callable[["Store"], Awaitable[T]]) -> T:
    """Opens the store for one act. Quietly: stdout is for the answer."""
    from axon.bootstrap.services import open_store
    from axon.telemetry import logs

    async def run() -> T:
        async with open_store(settings) as store:
            return await act(store)

    logs.configure(replace(settings.log, level="warning"))
    return asyncio.run(run())


async def _add(store: "Store", key: Key) -> None:
    """Makes its tenant as well, if that is a new one."""
    with contextlib.suppress(Conflict):
        await store.tenants.add(Tenant(id=key.tenant, created_at=key.created_at))
    await store.keys.add(key)


def _facts(key: Key, now: float) -> dict[str, str | None]:
    state = "revoked" if key.revoked_at is not None else "valid" if key.valid(now) else "expired"
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "created": _date(key.created_at),
        "expires": _date(key.expires_at),
        "revoked": _date(key.revoked_at),
        "state": state,
    }


def _date(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
