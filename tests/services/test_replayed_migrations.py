"""A file whose migrations are replayed is the file that they make."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine

from axon.adapters.store.migrate import upgrade_file
from tests.services import replayed_migrations


def contents(path: Path) -> list[str]:
    """Everything in a file, as statements."""
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


@pytest.fixture
def earnest(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each migration in earnest."""
    noted: list[str] = []

    def upgrade(connection: Connection, to: str = "head") -> None:
        noted.append(to)
        migrate(connection, to)

    migrate = replayed_migrations._migrate
    monkeypatch.setattr(replayed_migrations, "_migrate", upgrade)
    monkeypatch.setattr(replayed_migrations, "_ran", [])
    return noted


def test_a_second_file_is_made_without_the_migrations_and_is_the_same(tmp_path: Path, earnest: list[str]) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    upgrade_file(first, busy_timeout_s=5.0)
    assert earnest == ["head"]
    upgrade_file(second, busy_timeout_s=5.0)
    assert earnest == ["head"]
    assert contents(first) == contents(second)
    assert any("alembic_version" in line for line in contents(second))


def test_a_file_that_has_tables_is_migrated_in_earnest(tmp_path: Path, earnest: list[str]) -> None:
    upgrade_file(tmp_path / "first.db", busy_timeout_s=5.0)
    older = create_engine(f"sqlite:///{tmp_path / 'older.db'}")
    with older.begin() as connection:
        replayed_migrations._upgrade(connection, "0003")
    older.dispose()
    upgrade_file(tmp_path / "older.db", busy_timeout_s=5.0)
    assert earnest == ["head", "0003", "head"]
    assert sorted(contents(tmp_path / "older.db")) == sorted(contents(tmp_path / "first.db"))
