"""Records as a later release might write them, and what must become of them. Knows no backend."""

import json
from dataclasses import replace

from sqlalchemy import create_engine, make_url, text

from axon.domain.registry.model import Model
from axon.ports.store import Store


async def check_registry(store: Store, url: str) -> None:
    """A model with a field that this release does not know is read, changed, and keeps it; so does the audit trail."""
    assert await store.registry.write(None, Model(name="small", created=1.0), actor="test", at=1.0) == 1
    named = make_url(url)
    engine = create_engine(named if named.drivername == "sqlite" else named.set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        body = connection.execute(text("SELECT body FROM registry_records")).scalar_one()
        known = json.loads(body)
        connection.execute(text("UPDATE registry_records SET body = :body"), {"body": json.dumps({**known, "hue": 7})})
    old = (await store.registry.snapshot()).models["small"]
    assert await store.registry.write(old, replace(old, licence="mit"), actor="test", at=2.0) == 2
    with engine.begin() as connection:
        body = connection.execute(text("SELECT body FROM registry_records")).scalar_one()
    engine.dispose()
    assert json.loads(body) == {**known, "hue": 7, "licence": "mit", "revision": 2}
    (change,) = await store.registry.changes(after=1, limit=9)
    assert (json.loads(change.before)["hue"], change.after) == (7, body)
