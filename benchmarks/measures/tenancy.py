"""Tenants with keys in a server's store, made for a benchmark. Knows no load."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from axon.bootstrap.services import load_pepper, open_store
from axon.domain.tenants.key import Key, digest, new_key_text
from axon.domain.tenants.tenant import Limits, Tenant
from axon.settings import load

Keys = dict[str, tuple[str, ...]]
NUM_KEYS = 4


def make_tenants(tenants: Mapping[str, Limits], *, data_dir: Path, store: str | None = None) -> Keys:
    """Several keys for each, in the order given, which is that of their places."""
    settings = load({"data_dir": data_dir, **({"store": store} if store else {})}).settings

    async def make() -> Keys:
        pepper, now = load_pepper(settings), time.time()
        found: Keys = {}
        async with AsyncExitStack() as stack:
            opened = await open_store(settings, stack)
            for name, limits in tenants.items():
                await opened.tenants.add(Tenant(id=name, limits=limits, created_at=now))
                texts = []
                for _ in range(NUM_KEYS):
                    parts, text = new_key_text()
                    await opened.keys.add(
                        Key(id=parts.id, tenant=name, digest=digest(pepper, parts.secret), created_at=now)
                    )
                    texts.append(text)
                found[name] = tuple(texts)
        return found

    return asyncio.run(make())
