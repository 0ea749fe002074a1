"""The chart's backup: its script is run by a real shell with the real program, as its pod would run it."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.deploy.chart import AWS, KEPT_AND_COPIED, Workload, rendered, workloads
from tests.services import s3
from tests.services.on_path import axon_on_path


def backup_of(values: str) -> Workload:
    (found,) = [each for each in workloads(rendered(values)) if each.kind == "CronJob"]
    return found


def run(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs it on a store of its own, with a folder in place of the pod's volume."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AXON_", "AWS_"))}
    own = {"AXON_DATA_DIR": str(folder / "data"), "AXON_PEPPER": "of-a-test", "TMPDIR": str(folder)}
    here = script.replace("/backups", str(folder / "backups"))
    command = ["sh", "-euc", here]
    with axon_on_path() as path:
        environ = {**clean, **own, "PATH": path, **more}
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a store with one key is."""
    (tmp_path / "backups").mkdir()
    made = run("axon keys create --tenant acme", tmp_path)
    assert made.returncode == 0, made.stderr
    return tmp_path


def test_a_good_archive_is_kept_and_the_oldest_goes(folder: Path) -> None:
    pod = backup_of("ha")
    (script,) = pod.container["args"]
    backups = folder / "backups"
    for day in range(1, 15):
        (backups / f"axon-202001{day:02d}T021700Z.backup").write_text("an older one")
    done = run(script, folder)
    assert done.returncode == 0, done.stderr
    assert "can be restored" in done.stdout
    assert "It has the pepper" in done.stdout
    names = sorted(path.name for path in backups.iterdir())
    assert len(names) == 14
    assert names[0] == "axon-20200102T021700Z.backup"
    assert names[-1].startswith("axon-2")
    assert (backups / names[-1]).stat().st_mode & 0o777 == 0o600


def test_an_archive_that_cannot_be_restored_is_a_failure_and_takes_no_other_with_it(folder: Path) -> None:
    (script,) = backup_of("ha").container["args"]
    old = folder / "backups" / "axon-20200101T021700Z.backup"
    old.write_text("an older one")
    done = run(script.replace("axon backup verify", "false"), folder)
    assert done.returncode != 0
    assert list((folder / "backups").iterdir()) == [old]


def test_an_archive_has_its_name_when_it_is_proved_and_not_before(folder: Path) -> None:
    (script,) = backup_of("ha").container["args"]
    seen = script.replace("axon backup verify", "ls /backups; axon backup verify")
    done = run(seen, folder)
    assert done.returncode == 0, done.stderr
    (name,) = [path.name for path in (folder / "backups").iterdir()]
    assert f"{name}.unproved" in done.stdout.splitlines()
    assert name not in done.stdout.splitlines()


def test_what_killed_runs_left_goes_and_what_another_run_writes_now_stays(folder: Path) -> None:
    pod = backup_of("ha")
    (script,) = pod.container["args"]
    deadline_s = pod.owner["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"]
    backups, old = folder / "backups", time.time() - deadline_s - 180
    left = [f"axon-20200115T021700Z.backup.{end}" for end in ("partial", "unproved", "unproved.partial")]
    others = ["axon-20200115T021700Z.backup.age", "axon-2-20200115T021700Z.backup.partial"]
    now = [f"axon-20200116T021700Z.backup.{end}" for end in ("unproved", "unproved.partial")]
    for name in (*left, *others, *now):
        (backups / name).write_text("bytes")
    for name in (*left, *others):
        os.utime(backups / name, (old, old))
    done = run(script, folder)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in backups.iterdir()}
    assert names & {*left, *others, *now} == {*others, *now}


def test_while_no_copy_can_be_made_old_archives_of_this_release_go_all_the_same(folder: Path) -> None:
    (script,) = backup_of(KEPT_AND_COPIED).container["args"]
    backups = folder / "backups"
    others = {"axon-2-20190101T021700Z.backup", "axon-of-a-friend.backup"}
    for name in (*others, *(f"axon-202001{day:02d}T021700Z.backup" for day in range(1, 15))):
        (backups / name).write_text("an older one")
    here = script.replace("example-axon-backups", "no-such-bucket")
    done = run(here, folder, **s3.CREDENTIALS, AWS_ENDPOINT_URL=s3.shared_server().url)
    assert done.returncode != 0
    assert "no-such-bucket" in done.stderr
    names = {path.name for path in backups.iterdir()}
    assert others <= names
    assert "axon-20200101T021700Z.backup" not in names
    assert len(names - others) == 14
    assert all(name.endswith("Z.backup") for name in names - others)


def test_a_good_archive_is_copied_into_the_bucket_without_the_pepper(folder: Path) -> None:
    (script,) = backup_of(AWS).container["args"]
    server = s3.shared_server()
    bucket = server.new_bucket()
    here = script.replace("axon-prod-123456789012-backups", bucket)
    done = run(here, folder, **s3.CREDENTIALS, AWS_ENDPOINT_URL=server.url)
    assert done.returncode == 0, done.stderr
    assert f"is now at s3://{bucket}/axon/axon-2" in done.stdout
    assert "It has no pepper" in done.stdout


def test_one_runs_at_a_time_and_each_ends() -> None:
    for values in ("ha", "external-datastores", AWS):
        pod = backup_of(values)
        spec, job = pod.owner["spec"], pod.owner["spec"]["jobTemplate"]["spec"]
        assert spec["concurrencyPolicy"] == "Forbid"
        assert job["activeDeadlineSeconds"] > 0
        assert pod.spec["restartPolicy"] == "Never"
        volumes = {each["name"]: each for each in pod.spec["volumes"]}
        assert ("persistentVolumeClaim" in volumes["backups"]) is (values == "ha")
    assert not [each for each in workloads(rendered("minimal")) if each.kind == "CronJob"]


def test_it_reads_the_files_of_batches_and_cannot_write_them() -> None:
    pod = backup_of("ha")
    (mount,) = [each for each in pod.container["volumeMounts"] if each["name"] == "files"]
    assert mount == {"name": "files", "mountPath": pod.env["AXON_BATCHES_FILES_DIR"], "readOnly": True}
    assert backup_of(AWS).env["AXON_BATCHES_FILES_DIR"].startswith("s3://"), "which the archive's manifest then says"
