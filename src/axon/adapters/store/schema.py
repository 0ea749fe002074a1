"""The tables, for both databases. Knows no statement; ``migrations`` upgrade an older database to them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

HEAD = "0015"
"""Id of the migration that creates these tables."""

metadata = MetaData()

keys = Table(
    "keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Column("scopes", Text, nullable=False, server_default="inference read"),
    Column("last_used_at", Double),
    Column("previous", Text, nullable=False, server_default=""),
)

Index("keys_by_tenant", keys.c.tenant, keys.c.created_at)

web_sessions = Table(
    "web_sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("user_name", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
)

Index("web_sessions_by_key", web_sessions.c.key_id, web_sessions.c.created_at)
Index("web_sessions_by_end", web_sessions.c.ends_at)

plans = Table(
    "plans",
    metadata,
    Column("name", Text, primary_key=True),
    Column("limits", Text, nullable=False),
)

tenants = Table(
    "tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("limits", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("suspended_at", Double),
)

Index("tenants_by_place", tenants.c.place, unique=True)

removed_tenants = Table(
    "removed_tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("removed_at", Double, nullable=False),
)

registry_records = Table(
    "registry_records",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
)

registry_changes = Table(
    "registry_changes",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("made_at", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
)

Index("registry_changes_by_time", registry_changes.c.made_at, registry_changes.c.number)

audit = Table(
    "audit",
    metadata,
    Column("id", Text, primary_key=True),
    Column("made_at", Double, nullable=False),
    Column("actor", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
)

Index("audit_by_time", audit.c.made_at, audit.c.id)

# One row, which the migration adds. Whoever changes the registry locks it first, so changes come one after the other.
registry_revision = Table(
    "registry_revision",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("rank", SmallInteger, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("ordinal", Integer, nullable=False, server_default="0"),
    Column("previous", Text, nullable=False, server_default=""),
    Column("opened_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("code", Text, nullable=False),
    Column("retain", Boolean, nullable=False),
    Column("body", LargeBinary),
    Column("ledger", LargeBinary),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Column("pin", Text, nullable=False, server_default=""),
    Column("generation", Integer, nullable=False, server_default="0"),
    Column("adapter", Text, nullable=False, server_default=""),
    Column("price", Text, nullable=False, server_default=""),
    Column("cost_nanos", BigInteger, nullable=False, server_default="0"),
    Column("currency", Text, nullable=False, server_default=""),
)

# A covering index: a month's usage of a busy tenant is read from the index alone.
Index(
    "turns_by_tenant",
    turns.c.tenant,
    turns.c.ended_at,
    turns.c.prompt_tokens,
    turns.c.cached_tokens,
    turns.c.output_tokens,
    turns.c.cost_nanos,
    turns.c.currency,
    turns.c.deployment,
)
Index("turns_by_rank", turns.c.rank, turns.c.opened_at, turns.c.id)
Index(
    "turns_to_purge",
    turns.c.retain,
    turns.c.ended_at,
    sqlite_where=turns.c.body.is_not(None),
    postgresql_where=turns.c.body.is_not(None),
)
# A covering index too; a turn without text is not in it. SQLite reads the index alone only when it has
# every column that the query names. On PostgreSQL the release before, which knows no ``bytes``, may purge meanwhile.
Index(
    "turns_by_storage",
    turns.c.tenant,
    turns.c.retain,
    turns.c.bytes,
    sqlite_where=turns.c.bytes > 0,
    postgresql_where=turns.c.body.is_not(None),
)
Index(
    "turns_by_session",
    turns.c.session,
    turns.c.ordinal,
    sqlite_where=turns.c.session != "",
    postgresql_where=turns.c.session != "",
)
Index(
    "turns_by_previous",
    turns.c.previous,
    sqlite_where=turns.c.previous != "",
    postgresql_where=turns.c.previous != "",
)
Index(
    "turns_by_pin",
    turns.c.pin,
    turns.c.generation,
    turns.c.ordinal,
    sqlite_where=turns.c.pin != "",
    postgresql_where=turns.c.pin != "",
)
Index(
    "turns_by_version",
    turns.c.version,
    turns.c.opened_at,
    sqlite_where=turns.c.pin != "",
    postgresql_where=turns.c.pin != "",
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("used_at", Double, nullable=False),
    Column("metadata", LargeBinary, nullable=False),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Column("num_items", BigInteger, nullable=False, server_default="0"),
)

Index("conversations_by_use", conversations.c.used_at)
Index("conversations_by_tenant", conversations.c.tenant, conversations.c.bytes, conversations.c.num_items)

entries = Table(
    "entries",
    metadata,
    Column("conversation", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("ordinal", Integer, nullable=False),
    Column("added_at", Double, nullable=False),
    Column("items", LargeBinary, nullable=False),
)

hidden_items = Table(
    "hidden_items",
    metadata,
    Column("conversation", Text, primary_key=True),
    Column("id", Text, primary_key=True),
)

terms = Table(
    "terms",
    metadata,
    Column("name", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
)

replica_uses = Table(
    "replica_uses",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("deployment", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("pool", Text, nullable=False),
    Column("began_at", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("price_nanos", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
)

Index("replica_uses_by_tenant", replica_uses.c.tenant, replica_uses.c.began_at)

files = Table(
    "files",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("filename", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)

Index("files_by_tenant", files.c.tenant, files.c.id, files.c.bytes)
Index("files_by_expiry", files.c.expires_at)

batches = Table(
    "batches",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("input_file", Text, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("holder", Text, nullable=False, server_default=""),
    Column("held_until", Double, nullable=False, server_default="0"),
    Column("body", LargeBinary, nullable=False),
)

Index("batches_by_tenant", batches.c.tenant, batches.c.id)
Index("batches_by_end", batches.c.ended, batches.c.created_at)

batch_results = Table(
    "batch_results",
    metadata,
    Column("batch", Text, primary_key=True),
    Column("line", Integer, primary_key=True, autoincrement=False),
    Column("ok", Boolean, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("id", Text, primary_key=True),
    Column("erased_at", Double, nullable=False),
)

Index("tombstones_by_age", tombstones.c.erased_at)

markers = Table(
    "markers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("noted_at", Double, nullable=False),
)

Index("markers_by_age", markers.c.noted_at)
