"""A backup or a restore that is killed leaves what was there, or says that it did not finish."""

import asyncio
import signal
import subprocess
from pathlib import Path

import pytest

from axon.bootstrap.backups import create_backup, restore_backup, verify_backup
from axon.domain.backup import RestoreOptions
from tests.backup.places import Place
from tests.console.program import Axon
from tests.contracts.postgres_backend import shared_server
from tests.journeys.server import wait_until
from tests.services import warm

KILLED = 86
"""Exit code of a failpoint, which ends a process as a SIGKILL does: nothing is closed or cleaned up."""


@pytest.fixture
def changed(place: Place, tmp_path: Path) -> Path:
    """A backup of the place, which has changed since."""
    create_backup(place.settings, tmp_path / "one.backup")

    async def change() -> None:
        async with place.opened() as store:
            await store.keys.touch({"k0000001": 77.0})

    asyncio.run(change())
    return tmp_path / "one.backup"


def test_a_killed_backup_leaves_no_file_that_looks_like_one(place: Place, axon: Axon, tmp_path: Path) -> None:
    for name in ("backup.part=kill:3", "backup.written=kill"):
        ran = axon("backup", "create", str(tmp_path / "one.backup"), AXON_FAILPOINTS=name, **place.environ)
        assert ran.returncode == KILLED, ran.stderr
        assert not (tmp_path / "one.backup").exists()
        assert (tmp_path / "one.backup.partial").exists()
    ran = axon("backup", "create", str(tmp_path / "one.backup"), **place.environ)
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "one.backup.partial").exists()
    assert verify_backup(tmp_path / "one.backup").num_unfinished == 1


@pytest.mark.parametrize("point", ["restore.part", "restore.loaded"])
def test_a_restore_that_is_killed_while_it_prepares_has_changed_nothing(
    place: Place, axon: Axon, changed: Path, point: str
) -> None:
    before = place.contents()
    ran = axon("backup", "restore", str(changed), "--force", AXON_FAILPOINTS=f"{point}=kill", **place.environ)
    assert ran.returncode == KILLED, ran.stderr
    assert place.contents() == before
    assert axon("keys", "list", **place.environ).returncode == 0


@pytest.mark.parametrize("point", ["restore.marked", "restore.replaced"])
def test_a_restore_that_is_killed_while_it_replaces_is_marked_and_done_again(
    place: Place, axon: Axon, changed: Path, point: str
) -> None:
    _kill_while_it_replaces(place, axon, changed, point)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_restore_that_is_killed_before_it_renames_the_file_leaves_the_old_one_whole(
    place: Place, axon: Axon, changed: Path
) -> None:
    _kill_while_it_replaces(place, axon, changed, "restore.swap")


def _kill_while_it_replaces(place: Place, axon: Axon, changed: Path, point: str) -> None:
    (place.data_dir / "pepper").write_text("another\n")
    before = place.contents()
    ran = axon("backup", "restore", str(changed), "--force", AXON_FAILPOINTS=f"{point}=kill", **place.environ)
    assert ran.returncode == KILLED, ran.stderr
    if point != "restore.replaced":
        assert place.contents() == before, "whole, although it may not fit to the pepper"
    for command in (
        ["keys", "list"],
        ["serve", "--port", "0", "--metrics-port", "0"],
        ["backup", "create", str(changed.parent / "two.backup")],
    ):
        refused = axon(*command, **place.environ)
        assert refused.returncode == 2
        assert "was cut off" in refused.stderr
    again = axon("backup", "restore", str(changed), "--force", **place.environ)
    assert again.returncode == 0, again.stderr
    assert axon("keys", "list", **place.environ).returncode == 0
    assert (place.data_dir / "pepper").read_text() == "of the first\n"
    assert place.contents()["keys"] != before["keys"]


def test_a_real_sigkill_in_the_middle(place: Place, axon: Axon, changed: Path, tmp_path: Path) -> None:
    """The same by the signal, while the process stands still in the middle of its work."""
    before = place.contents()
    partial = tmp_path / "two.backup.partial"
    creating = _stalled(axon, place, "backup.part", "backup", "create", str(tmp_path / "two.backup"))
    wait_until(partial.exists, "the backup has begun")
    creating.send_signal(signal.SIGKILL)
    creating.wait(30)
    assert not (tmp_path / "two.backup").exists()
    restoring = _stalled(axon, place, "restore.part", "backup", "restore", str(changed), "--force")
    wait_until(lambda: _loads(place), "the restore has begun")
    restoring.send_signal(signal.SIGKILL)
    restoring.wait(30)
    assert place.contents() == before
    restore_backup(place.settings, changed, RestoreOptions(force=True))
    assert place.contents()["keys"] != before["keys"]


def _stalled(axon: Axon, place: Place, point: str, *arguments: str) -> warm.Process:
    environ = axon._environ({**place.environ, "AXON_FAILPOINTS": f"{point}=stall"})
    return warm.start(
        arguments, environ=environ, folder=place.data_dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _loads(place: Place) -> bool:
    """Whether a restore has begun to write: into a file beside the store, or in a transaction with locks."""
    if place.url.startswith("sqlite"):
        return (place.data_dir / "axon.db.restoring").exists()
    query = (
        "SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.application_name = 'axon backup' "
        f"AND a.datname = '{place.url.rsplit('/', 1)[1]}' AND l.mode = 'AccessExclusiveLock' AND a.state LIKE 'idle%'"
    )
    return bool(shared_server().execute(query))
