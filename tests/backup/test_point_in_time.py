"""PostgreSQL's own point-in-time recovery, with WAL archiving, as docs/deploy/backup.md writes it down."""

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from axon.bootstrap.backups import settle_store
from axon.domain.turn import TurnState
from tests.backup.places import Place
from tests.contracts.builders import make_ended, make_job
from tests.services.postgres import PostgresServer
from tests.services.process import private_folder, unprivileged, wait_for
from tests.services.require import find, require

pytestmark = pytest.mark.services


def test_a_server_is_recovered_to_a_moment_before_the_mistake(tmp_path: Path) -> None:
    require("postgres", "initdb", "pg_basebackup")
    wal = private_folder(tmp_path / "wal")
    settings = {"archive_mode": "on", "archive_command": f"cp %p {wal}/%f", "wal_level": "replica"}
    server = PostgresServer(tmp_path / "primary", settings)
    server.start()
    try:
        place = Place(url=_database(server), data_dir=tmp_path / "data")
        place.fill()
        base = tmp_path / "recovered"
        recovered = PostgresServer(base, {**settings, "archive_mode": "off"})
        _base_backup(server, base / "data")
        _apply(place, "turn_after_base")
        time.sleep(0.05)
        [(moment,)] = server.execute("SELECT clock_timestamp()::text")
        time.sleep(0.05)
        server.execute("DELETE FROM turns", database="axon")  # the mistake
        server.execute("SELECT pg_switch_wal()")
        _wait_archived(server)
        _recover(base / "data", wal, str(moment))
        try:
            recovered.start()
            wait_for(lambda: recovered.execute("SELECT pg_is_in_recovery()") == [(False,)], "it is promoted")
            back = Place(url=recovered.database_url("axon"), data_dir=tmp_path / "data")
            ids = {turn for (turn,) in back.rows("turns", "id")}
            assert {"turn_after_base", "turn_open", "turn_0"} <= ids, "what was written until then is there"
            done = settle_store(back.settings)
            assert done.num_ended == 1
            assert ("turn_open", str(TurnState.CANCELLED)) in back.rows("turns", "id", "state")
            _apply(back, "turn_new")
        finally:
            recovered.stop()
    finally:
        server.stop()
        shutil.rmtree(wal, ignore_errors=True)


def _database(server: PostgresServer) -> str:
    server.execute("CREATE DATABASE axon")
    return server.database_url("axon")


def _apply(place: Place, turn: str) -> None:
    async def write() -> Any:
        async with place.opened() as store:
            await store.turns.apply([make_ended(make_job(turn))])

    asyncio.run(write())


def _base_backup(server: PostgresServer, target: Path) -> None:
    source = f"host=127.0.0.1 port={server.port} user=axon"
    command = [str(find("pg_basebackup")), "-D", str(target), "-d", source, "--checkpoint=fast", "--no-sync"]
    subprocess.run(unprivileged(command), check=True, cwd="/", capture_output=True, timeout=60)


def _wait_archived(server: PostgresServer) -> None:
    [(last,)] = server.execute("SELECT pg_walfile_name(pg_current_wal_lsn() - 1)")
    archived = "SELECT last_archived_wal FROM pg_stat_archiver"
    wait_for(lambda: str(server.execute(archived)[0][0] or "") >= str(last), "the log is archived")


def _recover(data: Path, wal: Path, moment: str) -> None:
    with (data / "postgresql.auto.conf").open("a") as file:
        file.write(f"restore_command = 'cp {wal}/%f %p'\n")
        file.write(f"recovery_target_time = '{moment}'\n")
        file.write("recovery_target_action = 'promote'\n")
    (data / "recovery.signal").touch()
    owner = data.stat()
    os.chown(data / "recovery.signal", owner.st_uid, owner.st_gid)
