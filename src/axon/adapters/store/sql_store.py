"""What the stores of both databases have in common: their tables while they are open. Knows no driver and no file."""

from dataclasses import dataclass

from sqlalchemy import text

from axon.adapters.store.database import Database
from axon.adapters.store.driver_errors import translated
from axon.adapters.store.tables.audit import SqlAudit
from axon.adapters.store.tables.batches import SqlBatches
from axon.adapters.store.tables.conversations import SqlConversations
from axon.adapters.store.tables.files import SqlFiles
from axon.adapters.store.tables.keys import SqlKeys
from axon.adapters.store.tables.markers import SqlMarkers
from axon.adapters.store.tables.pinned import SqlPinnedSessions
from axon.adapters.store.tables.plans import SqlPlans
from axon.adapters.store.tables.registry import SqlRegistry
from axon.adapters.store.tables.storage import SqlStorage
from axon.adapters.store.tables.tenants import SqlTenants
from axon.adapters.store.tables.terms import SqlTerms
from axon.adapters.store.tables.tombstones import SqlTombstones
from axon.adapters.store.tables.turns import SqlTurns
from axon.adapters.store.tables.usage import SqlUsage
from axon.adapters.store.tables.web_sessions import SqlWebSessions
from axon.errors import DependencyDown


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one open database."""

    database: Database
    keys: SqlKeys
    web_sessions: SqlWebSessions
    tenants: SqlTenants
    plans: SqlPlans
    registry: SqlRegistry
    audit: SqlAudit
    usage: SqlUsage
    storage: SqlStorage
    pinned: SqlPinnedSessions
    turns: SqlTurns
    markers: SqlMarkers
    terms: SqlTerms
    conversations: SqlConversations
    tombstones: SqlTombstones
    files: SqlFiles
    batches: SqlBatches


def tables_of(database: Database) -> Tables:
    return Tables(
        database=database,
        keys=SqlKeys(database),
        web_sessions=SqlWebSessions(database),
        tenants=SqlTenants(database),
        plans=SqlPlans(database),
        registry=SqlRegistry(database),
        audit=SqlAudit(database),
        usage=SqlUsage(database),
        storage=SqlStorage(database),
        pinned=SqlPinnedSessions(database),
        turns=SqlTurns(database),
        markers=SqlMarkers(database),
        terms=SqlTerms(database),
        conversations=SqlConversations(database),
        tombstones=SqlTombstones(database),
        files=SqlFiles(database),
        batches=SqlBatches(database),
    )


class SqlStore:
    """All aggregates in one database. A subclass opens it and sets ``_tables``, and takes them away when it closes."""

    _tables: Tables | None = None

    @property
    def keys(self) -> SqlKeys:
        return self._opened.keys

    @property
    def web_sessions(self) -> SqlWebSessions:
        return self._opened.web_sessions

    @property
    def tenants(self) -> SqlTenants:
        return self._opened.tenants

    @property
    def plans(self) -> SqlPlans:
        return self._opened.plans

    @property
    def registry(self) -> SqlRegistry:
        return self._opened.registry

    @property
    def audit(self) -> SqlAudit:
        return self._opened.audit

    @property
    def usage(self) -> SqlUsage:
        return self._opened.usage

    @property
    def storage(self) -> SqlStorage:
        return self._opened.storage

    @property
    def pinned(self) -> SqlPinnedSessions:
        return self._opened.pinned

    @property
    def turns(self) -> SqlTurns:
        return self._opened.turns

    @property
    def markers(self) -> SqlMarkers:
        return self._opened.markers

    @property
    def terms(self) -> SqlTerms:
        return self._opened.terms

    @property
    def conversations(self) -> SqlConversations:
        return self._opened.conversations

    @property
    def tombstones(self) -> SqlTombstones:
        return self._opened.tombstones

    @property
    def files(self) -> SqlFiles:
        return self._opened.files

    @property
    def batches(self) -> SqlBatches:
        return self._opened.batches

    async def ping(self) -> None:
        with translated():
            async with self._opened.database.connect() as connection:
                await connection.execute(text("SELECT 1 FROM turns LIMIT 1"))

    @property
    def _opened(self) -> Tables:
        if self._tables is None:
            raise DependencyDown("The store is not open.")
        return self._tables
