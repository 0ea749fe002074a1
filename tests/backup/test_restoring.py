"""A backup is restored on either database: the same rows, files and pepper, or a refusal that changes nothing."""

import asyncio
import contextlib
import json
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from axon.adapters.backup.contents import revision_of
from axon.adapters.backup.database import new_file, transaction
from axon.adapters.backup.keeping import KINDS
from axon.adapters.backup.reading import Archive
from axon.adapters.backup.writing import ArchiveWriter
from axon.adapters.store import schema
from axon.adapters.store.migrate import upgrade
from axon.bootstrap.backups import create_backup, restore_backup, verify_backup
from axon.domain.backup import RestoreOptions
from axon.domain.session.erasure import session_mark, turn_mark
from axon.domain.tenants.tenant import Tenant
from axon.errors import InvalidInput, Misconfigured
from axon.runtime.datafolder import locked
from tests.backup.conftest import BOTH, MakePlace
from tests.backup.places import BYTES, Place
from tests.console.program import Axon
from tests.contracts import older
from tests.contracts.builders import make_ended, make_job, make_key
from tests.services.process import free_port

RUN = RestoreOptions(run_unfinished=True)
CHANGED = {"registry_revision", "terms", "batches", "web_sessions"}
"""Tables that a restore settles."""


@pytest.fixture
def archive(place: Place, tmp_path: Path) -> Path:
    path = tmp_path / "one.backup"
    create_backup(place.settings, path)
    return path


@pytest.mark.parametrize("into", BOTH)
def test_every_row_file_and_the_pepper_come_back_on_either_database(
    place: Place, archive: Path, make_place: MakePlace, into: str
) -> None:
    target = make_place(into, "target")
    before = place.contents()
    assert all(before[name][0] for name in ("keys", "plans", "tenants", "turns", "registry_records", "batches"))
    done = restore_backup(target.settings, archive, RUN)
    after = target.contents()
    assert {name for name in before if before[name] != after[name]} <= CHANGED
    assert set(after) == set(schema.metadata.tables)
    assert (target.data_dir / "files" / "whole" / "file-1").read_bytes() == BYTES
    assert (target.data_dir / "pepper").read_text() == "of the first\n"
    assert stat.S_IMODE((target.data_dir / "pepper").stat().st_mode) == 0o600
    assert (done.num_ended, done.num_left, done.warnings) == (0, 1, ())


async def test_a_restored_store_is_used_as_before(place: Place, other: Place, tmp_path: Path) -> None:
    create_backup(place.settings, tmp_path / "one.backup")
    restore_backup(other.settings, tmp_path / "one.backup", RestoreOptions())
    async with other.opened() as store:
        key = await store.keys.find("k0000001")
        assert key is not None
        assert "small" in (await store.registry.snapshot()).models
        assert len(await store.turns.entries("conv_0", limit=100)) == 7
        await store.turns.apply([make_ended(make_job("turn_new"))])
        assert await store.turns.get("turn_new") is not None


def test_a_store_that_is_not_empty_is_replaced_only_by_force(place: Place, archive: Path, other: Place) -> None:
    other.fill(num_turns=1)
    before = other.contents()
    with pytest.raises(Misconfigured, match="--force"):
        restore_backup(other.settings, archive, RestoreOptions())
    assert other.contents() == before
    restore_backup(other.settings, archive, RestoreOptions(force=True))
    assert other.contents()["turns"][0] == place.contents()["turns"][0]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_another_pepper_is_replaced_only_by_force(place: Place, archive: Path, other: Place) -> None:
    (other.data_dir / "pepper").write_text("another\n")
    with pytest.raises(Misconfigured, match="pepper"):
        restore_backup(other.settings, archive, RestoreOptions())
    restore_backup(other.settings, archive, RestoreOptions(force=True))
    assert (other.data_dir / "pepper").read_text() == "of the first\n"


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_backup_without_secrets_has_no_pepper_and_says_when_it_will_not_do(
    place: Place, other: Place, tmp_path: Path
) -> None:
    path = tmp_path / "public.backup"
    create_backup(place.settings, path, with_secrets=False)
    assert b"of the first" not in path.read_bytes()
    (other.data_dir / "pepper").write_text("another\n")
    done = restore_backup(other.settings, path, RestoreOptions())
    assert any("AXON_PEPPER" in warning for warning in done.warnings)
    assert (other.data_dir / "pepper").read_text() == "another\n"


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_pepper_of_the_settings_is_backed_up_and_compared(place: Place, other: Place, tmp_path: Path) -> None:
    path = tmp_path / "one.backup"
    create_backup(replace(place.settings, pepper="from the settings"), path)
    same = restore_backup(replace(other.settings, pepper="from the settings"), path, RestoreOptions())
    assert same.warnings == ()
    wrong = restore_backup(replace(other.settings, pepper="wrong"), path, RestoreOptions(force=True))
    assert any("AXON_PEPPER is not the backup's" in warning for warning in wrong.warnings)


def test_what_was_revoked_and_erased_since_the_backup_stays_so(place: Place, archive: Path) -> None:
    async def change() -> None:
        now = Archive(archive).check().created_at
        async with place.opened() as store:
            await store.keys.revoke("k0000001", at=now + 1)
            await store.tombstones.put([turn_mark("turn_1"), session_mark("conv_0")], at=now + 1)
            await store.tenants.add(Tenant(id="later", created_at=now))
            assert await store.tenants.remove("acme", at=now + 1)
            await store.keys.add(make_key("k0000009"))

    asyncio.run(change())
    done = restore_backup(place.settings, archive, RestoreOptions(force=True))
    assert done.num_kept == 4
    revoked = dict(place.rows("keys", "id", "revoked_at"))
    assert revoked["k0000001"] is not None
    assert revoked["k0000002"] is None
    assert "k0000009" not in revoked, "what was made after the backup is lost"
    erased = {turn for turn, body in place.rows("turns", "id", "bytes") if body == 0}
    assert erased == {"turn_1", *(f"turn_{n}" for n in range(0, 20, 3))}
    assert place.rows("tenants", "id") == []
    assert ("acme",) in place.rows("removed_tenants", "id")


def test_a_backup_of_an_earlier_release_is_migrated(kind: str, make_place: MakePlace, tmp_path: Path) -> None:
    source, target = make_place(kind, "old"), make_place(kind, "new")
    if kind == "sqlite":
        (source.data_dir / "axon.db").touch()
    older.keep(source.url)
    manifest = create_backup(source.settings, tmp_path / "old.backup")
    assert manifest.revision == "0005"
    assert verify_backup(tmp_path / "old.backup").revision == "0005"
    restore_backup(target.settings, tmp_path / "old.backup", RestoreOptions())
    sizes = dict(target.rows("turns", "id", "bytes"))
    assert sizes == {"kept": 100, "short": 0, "purged": 0}, "the migration has counted them"


def test_a_store_of_a_later_release_is_not_touched(place: Place, archive: Path, tmp_path: Path) -> None:
    with transaction(place.address) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Misconfigured, match="9999"):
        create_backup(place.settings, tmp_path / "later.backup")
    assert not list(tmp_path.glob("later*"))
    with pytest.raises(Misconfigured, match="9999"):
        restore_backup(place.settings, archive, RestoreOptions(force=True))


def test_a_store_of_an_earlier_release_is_replaced(place: Place, archive: Path, other: Place) -> None:
    if other.url.startswith("sqlite"):
        (other.data_dir / "axon.db").touch()
    older.keep(other.url)
    done = restore_backup(other.settings, archive, replace(RUN, force=True))
    assert other.contents()["turns"] == place.contents()["turns"]
    assert (done.num_kept, done.lost, done.warnings) == (0, (), ())


def test_what_an_earlier_release_had_revoked_and_erased_stays_so(place: Place, archive: Path, other: Place) -> None:
    if other.url.startswith("sqlite"):
        (other.data_dir / "axon.db").touch()
    older.keep(other.url)
    later = Archive(archive).check().created_at + 1
    with transaction(other.address) as connection:
        for statement in (
            "INSERT INTO keys (id, tenant, digest, name, created_at, revoked_at) "
            "VALUES ('k0000001', 'acme', :digest, '', 1, :at)",
            "INSERT INTO tenants (id, name, plan, limits, place, created_at, suspended_at) "
            "VALUES ('acme', '', '', '{}', 0, 1, :at)",
            "INSERT INTO removed_tenants (id, removed_at) VALUES ('gone', :at)",
            "INSERT INTO tombstones (id, erased_at) VALUES (:mark, :at)",
        ):
            values = {"at": later, "digest": b"d", "mark": turn_mark("turn_1")}
            names = {name for name in values if f":{name}" in statement}
            connection.execute(text(statement), {name: values[name] for name in names})
    done = restore_backup(other.settings, archive, replace(RUN, force=True))
    assert (done.num_kept, done.lost) == (4, ())
    assert dict(other.rows("keys", "id", "revoked_at"))["k0000001"] == later
    assert dict(other.rows("tenants", "id", "suspended_at"))["acme"] == later
    assert ("gone",) in other.rows("removed_tenants", "id")
    assert dict(other.rows("turns", "id", "bytes"))["turn_1"] == 0


@pytest.mark.services
def test_rights_to_tables_outlive_a_restore(make_place: MakePlace, tmp_path: Path) -> None:
    place = make_place("postgres", "first")
    place.fill()
    create_backup(place.settings, tmp_path / "one.backup")
    with transaction(place.address) as connection:
        connection.execute(text("CREATE VIEW tokens AS SELECT tenant, sum(output_tokens) FROM turns GROUP BY tenant"))
    restore_backup(place.settings, tmp_path / "one.backup", RestoreOptions(force=True))
    with transaction(place.address) as connection:
        assert connection.execute(text("SELECT * FROM tokens")).all()


@pytest.mark.services
async def test_a_database_that_servers_use_is_replaced_only_when_asked(make_place: MakePlace, tmp_path: Path) -> None:
    place = make_place("postgres", "first")
    await asyncio.to_thread(place.fill)
    await asyncio.to_thread(create_backup, place.settings, tmp_path / "one.backup")
    async with place.opened() as store:
        with pytest.raises(Misconfigured, match="--while-running"):
            await asyncio.to_thread(restore_backup, place.settings, tmp_path / "one.backup", RestoreOptions(force=True))
        options = RestoreOptions(force=True, while_running=True)
        await asyncio.to_thread(restore_backup, place.settings, tmp_path / "one.backup", options)
        assert await store.turns.get("turn_1") is not None


def test_a_running_servers_file_is_not_replaced(make_place: MakePlace, tmp_path: Path) -> None:
    place = make_place("sqlite", "first")
    place.fill()
    create_backup(place.settings, tmp_path / "one.backup")
    with locked(place.data_dir), pytest.raises(Misconfigured, match="Another server"):
        restore_backup(place.settings, tmp_path / "one.backup", RestoreOptions(force=True))


def test_a_store_that_cannot_be_read_is_replaced_only_where_its_revocations_may_be_lost(
    make_place: MakePlace, axon: Axon, tmp_path: Path
) -> None:
    place, archive = make_place("sqlite", "first"), tmp_path / "one.backup"
    place.fill()
    create_backup(place.settings, archive)
    before = place.contents()
    (place.data_dir / "axon.db").write_bytes(b"nothing that SQLite would read" * 1000)
    (place.data_dir / "axon.db-wal").write_bytes(b"an old log" * 100)
    with pytest.raises(Misconfigured, match="--force --lose-revocations"):
        restore_backup(place.settings, archive, RestoreOptions())
    with pytest.raises(Misconfigured, match=r"ends of keys, .*come back.* --lose-revocations"):
        restore_backup(place.settings, archive, RestoreOptions(force=True))
    flags = ("--force", "--lose-revocations", "--unfinished", "run", "--json")
    ran = axon("backup", "restore", str(archive), *flags, **place.environ)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["lost"] == list(KINDS.values())
    assert "revoke, remove and erase them again" in ran.stderr
    assert place.contents()["turns"] == before["turns"]


@pytest.mark.parametrize(
    ("table", "kept", "lost"), [("tombstones", 1, ("erasures of texts",)), ("alembic_version", 2, ()), ("plans", 2, ())]
)
def test_what_a_damaged_store_still_tells_is_carried_over(
    make_place: MakePlace, tmp_path: Path, table: str, kept: int, lost: tuple[str, ...]
) -> None:
    place, archive = make_place("sqlite", "first"), tmp_path / "one.backup"
    place.fill()
    later = create_backup(place.settings, archive).created_at + 1

    async def change() -> None:
        async with place.opened() as store:
            await store.keys.revoke("k0000001", at=later)
            await store.tombstones.put([turn_mark("turn_1")], at=later)

    asyncio.run(change())
    _damage(place.data_dir / "axon.db", table)
    if lost:
        with pytest.raises(Misconfigured, match=r"malformed.*erasures of texts\."):
            restore_backup(place.settings, archive, RestoreOptions(force=True))
    done = restore_backup(place.settings, archive, RestoreOptions(force=True, lose_revocations=bool(lost)))
    assert (done.num_kept, done.lost) == (kept, lost)
    assert dict(place.rows("keys", "id", "revoked_at"))["k0000001"] == later


def test_a_file_of_another_program_is_replaced_only_by_force(make_place: MakePlace, tmp_path: Path) -> None:
    place, target = make_place("sqlite", "first"), make_place("sqlite", "target")
    place.fill()
    create_backup(place.settings, tmp_path / "one.backup")
    with contextlib.closing(sqlite3.connect(target.data_dir / "axon.db")) as file:
        file.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(Misconfigured, match="--force"):
        restore_backup(target.settings, tmp_path / "one.backup", RestoreOptions())
    restore_backup(target.settings, tmp_path / "one.backup", replace(RUN, force=True))
    assert target.contents()["turns"] == place.contents()["turns"]


def _damage(path: Path, table: str) -> None:
    """Overwrites the first page of a table, as a failing disk does."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        file.execute("PRAGMA journal_mode=DELETE")
        [(page,)] = file.execute("SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        [(size,)] = file.execute("PRAGMA page_size")
    with path.open("r+b") as bytes_of:
        bytes_of.seek((page - 1) * size)
        bytes_of.write(b"\xff" * size)


@pytest.mark.services
def test_a_backup_is_tried_in_an_empty_database_which_stays_so(
    place: Place, archive: Path, make_place: MakePlace
) -> None:
    scratch = make_place("postgres", "scratch")
    verify_backup(archive, into=scratch.url)
    assert scratch.contents() == {}
    scratch.fill(num_turns=1)
    with pytest.raises(Misconfigured, match="not empty"):
        verify_backup(archive, into=scratch.url)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_verify_notices_rows_that_are_not_those_of_the_manifest(place: Place, archive: Path, tmp_path: Path) -> None:
    """Digests of the parts are right, and the manifest tells of other rows: only a real restore shows it."""
    source, manifest = Archive(archive), Archive(archive).check()
    for number, table in enumerate(manifest.tables):
        if table.name != "turns":
            continue
        for wrong, said in ((replace(table, num_rows=7), "7"), (replace(table, digest="0" * 64), "turns")):
            tables = (*manifest.tables[:number], wrong, *manifest.tables[number + 1 :])
            path = tmp_path / f"wrong-{said}.backup"
            with path.open("wb") as file:
                writer = ArchiveWriter(file, at=0.0)
                for folder in ("tables", "files", "secrets"):
                    for name, data in source.members(manifest, folder):
                        writer.add(f"{folder}/{name}", data)
                writer.finish(replace(manifest, tables=tables))
            with pytest.raises(InvalidInput, match=said):
                verify_backup(path)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_the_program_says_what_is_in_a_backup_and_never_the_pepper(place: Place, axon: Axon, tmp_path: Path) -> None:
    made = axon("backup", "create", str(tmp_path), "--json", **place.environ)
    assert made.returncode == 0, made.stderr
    facts = json.loads(made.stdout)
    assert facts["rows"]["turns"] == 21
    assert facts["unfinished"] == 1
    [path] = tmp_path.glob("axon-*.backup")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    verified = axon("backup", "verify", str(path))
    assert verified.returncode == 0, verified.stderr
    assert "can be restored" in verified.stdout
    restored = axon("backup", "restore", str(path), AXON_DATA_DIR=str(tmp_path / "elsewhere"))
    assert restored.returncode == 0, restored.stderr
    assert "1 ended as cancelled" in restored.stdout
    assert "of the first" not in made.stdout + verified.stdout + restored.stdout


def test_a_backup_goes_to_the_standard_output_for_a_program_that_encrypts(
    make_place: MakePlace, axon: Axon, tmp_path: Path
) -> None:
    place = make_place("sqlite", "first")
    place.fill()
    command = [sys.executable, "-m", "axon", "backup", "create", "-"]
    made = subprocess.run(command, env=axon._environ(place.environ), cwd=tmp_path, capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr
    (tmp_path / "piped.backup").write_bytes(made.stdout)
    assert verify_backup(tmp_path / "piped.backup").num_unfinished == 1


def test_an_empty_database_has_nothing_to_back_up(kind: str, make_place: MakePlace, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"no store|no tables"):
        create_backup(make_place(kind, "empty").settings, tmp_path / "none.backup")
    assert not list(tmp_path.glob("none*"))


def test_migrations_up_to_each_revision_make_its_tables(tmp_path: Path) -> None:
    for number in range(1, int(schema.HEAD) + 1):
        with new_file(tmp_path / f"{number}.db") as connection:
            upgrade(connection, f"{number:04d}")
            assert revision_of(connection) == f"{number:04d}"


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_live_service_that_is_away_changes_nothing_and_is_told(place: Place, archive: Path, axon: Axon) -> None:
    before, away = place.contents(), f"redis://127.0.0.1:{free_port()}"
    ran = axon("backup", "restore", str(archive), "--force", "--live", away, **place.environ)
    assert ran.returncode == 1
    assert "--live memory://" in ran.stderr
    assert place.contents() == before
    assert axon("backup", "restore", str(archive), "--force", "--live", "memory://", **place.environ).returncode == 0
