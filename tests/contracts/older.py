"""Databases as earlier releases left them, and what must have become of them. Knows no backend."""

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Connection, create_engine, make_url, text

from axon.adapters.store.migrate import MIGRATIONS
from axon.domain.tenants.key import HOLDER
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import Tenant
from axon.ports.store import Store

_INSERT = text("INSERT INTO keys (id, tenant, digest, name, created_at) VALUES (:id, :tenant, :digest, '', :at)")
_TURN = text(
    "INSERT INTO turns (id, tenant, state, rank, deployment, version, session, opened_at, ended_at, prompt_tokens, "
    "cached_tokens, output_tokens, code, retain, body) "
    "VALUES (:id, 'acme', 'completed', 1, '', '', '', 1, 2, 0, 0, 0, '', :retain, :body)"
)
KEPT = Stored(num_bytes=100 + 5 + 30 + 40 + 1, num_objects=1 + 1 + 2 + 1)
"""What ``keep`` has stored for its tenant: a turn, a conversation with two entries, and an empty one."""


def keep(url: str) -> None:
    """Turns and conversations in tables that know no size."""
    engine = create_engine(_sync(url))
    with engine.begin() as connection:
        _migrate_to(connection, "0005")
        for turn_id, retain, body in (("kept", True, b"x" * 100), ("short", False, b"y"), ("purged", True, None)):
            connection.execute(_TURN, {"id": turn_id, "retain": retain, "body": body})
        for conversation, metadata, *entries in (("conv_1", b"x" * 5, 30, 40), ("conv_2", b"x")):
            connection.execute(
                text("INSERT INTO conversations VALUES (:id, 'acme', 1, 1, :metadata)"),
                {"id": conversation, "metadata": metadata},
            )
            for size in entries:
                connection.execute(
                    text("INSERT INTO entries VALUES (:conversation, :id, 1, 1, :items)"),
                    {"conversation": conversation, "id": f"ent_{size}", "items": b"z" * size},
                )
    engine.dispose()


def purge(url: str) -> None:
    """As a process of that release still does while others are upgraded."""
    engine = create_engine(_sync(url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE turns SET body = NULL WHERE id = 'kept'"))
    engine.dispose()


def fill(url: str) -> None:
    """Keys of three tenants in tables that know no tenant."""
    engine = create_engine(_sync(url))
    with engine.begin() as connection:
        _migrate_to(connection, "0003")
        for number, tenant in enumerate(("zoo", "acme", "zoo", "bee")):
            _add_key(connection, f"k{number}", tenant, at=100.0 + number)
    engine.dispose()


def add_key(url: str, key_id: str, tenant: str) -> None:
    """As a process of that release still does while others are upgraded."""
    engine = create_engine(_sync(url))
    with engine.begin() as connection:
        _add_key(connection, key_id, tenant, at=200.0)
    engine.dispose()


async def check(store: Store) -> None:
    """A tenant for each that had a key, in its place, and keys that may do what they could."""
    tenants = [(each.id, each.place, each.created_at) for each in await store.tenants.all()]
    assert tenants == [("zoo", 0, 100.0), ("acme", 1, 101.0), ("bee", 2, 103.0)]
    assert {key.scopes for key in await store.keys.all()} == {HOLDER}
    assert (await store.tenants.add(Tenant(id="new"))).place == 3


def _migrate_to(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _add_key(connection: Connection, key_id: str, tenant: str, *, at: float) -> None:
    connection.execute(_INSERT, {"id": key_id, "tenant": tenant, "digest": b"d", "at": at})


def _sync(url: str) -> URL:
    named = make_url(url)
    return named if named.drivername.startswith("sqlite") else named.set(drivername="postgresql+psycopg")
