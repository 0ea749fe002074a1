"""Migrates a database to the newest tables, with Alembic. Slow to import, so imported only when needed."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, create_engine, event

from axon.errors import Misconfigured

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(connection: Connection, to: str = "head") -> None:
    """Runs the migrations that are missing up to ``to`` in the caller's transaction, which must exclude other
    processes."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, to)
    except CommandError as error:
        raise Misconfigured(f"The store was written by a later release: {error}") from error


def upgrade_file(path: Path, *, busy_timeout_s: float) -> None:
    """Upgrades a SQLite file; a second process waits for the first and finds nothing to do."""
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args={"timeout": busy_timeout_s})
    _lock_at_begin(engine)
    try:
        with engine.begin() as connection:
            upgrade(connection)
    finally:
        engine.dispose()


def _lock_at_begin(engine: Engine) -> None:
    """Begins transactions with BEGIN IMMEDIATE: sqlite3 begins late and without the write lock, so two processes could
    migrate at once."""

    @event.listens_for(engine, "connect")
    def _connect(connection: object, _record: object) -> None:
        connection.isolation_level = None  # type: ignore[attr-defined]

    @event.listens_for(engine, "begin")
    def _begin(connection: object) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # type: ignore[attr-defined]
