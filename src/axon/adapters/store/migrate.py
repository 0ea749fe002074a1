"""Brings a SQLite file to the newest tables. Slow to import: only a file that is behind needs it."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import URL, Engine, create_engine, event

from axon.errors import Misconfigured

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(path: Path, *, busy_timeout_s: float) -> None:
    """Runs what is missing in one transaction; a second process waits for the first and finds nothing to do."""
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args={"timeout": busy_timeout_s})
    _lock_at_begin(engine)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except CommandError as error:
        raise Misconfigured(f"{path} was written by a later release: {error}") from error
    finally:
        engine.dispose()


def _lock_at_begin(engine: Engine) -> None:
    """sqlite3 begins late and without the write lock, which lets two processes migrate at once."""

    @event.listens_for(engine, "connect")
    def _connect(connection: object, _record: object) -> None:
        connection.isolation_level = None  # type: ignore[attr-defined]

    @event.listens_for(engine, "begin")
    def _begin(connection: object) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # type: ignore[attr-defined]
