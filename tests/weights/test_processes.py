"""Fetches in processes of their own: killed at random moments, two at once, a full disk, a folder without the right."""

import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from axon.weights.manifest import Manifest, read_manifest
from tests.journeys.server import REPOSITORY, wait_until
from tests.services.disk import SmallDisk, can_mount
from tests.weights.conftest import model_files, same_bytes
from tests.weights.object_server import Files

NOBODY = "65534"


class Fetch:
    """``tests.weights.fetching`` in a process."""

    def __init__(
        self,
        endpoint: str,
        models_dir: Path,
        source: str = "s3://models/tiny",
        before: Callable[[], None] | None = None,
        uid: str = "",
    ) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.weights.fetching",
                endpoint,
                source,
                str(models_dir),
                *([uid] if uid else []),
            ],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)

    def said(self) -> tuple[int, str]:
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out.strip()


def partial(models_dir: Path) -> Manifest | None:
    """The manifest of the unfinished fetch."""
    found = [read_manifest(folder) for folder in (models_dir / "by-digest" / "fetching").glob("*") if folder.is_dir()]
    return found[0] if found else None


def verified(models_dir: Path) -> dict[str, int]:
    manifest = partial(models_dir)
    return {entry.name: entry.verified for entry in manifest.files} if manifest else {}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_fetch_that_is_killed_again_and_again_ends_whole_and_asks_for_nothing_that_was_verified(
    tmp_path: Path, files: Files, endpoint: str, seed: int
) -> None:
    rng = random.Random(seed)
    files.pause_s = 0.02
    known: dict[str, int] = {}
    for _ in range(4):
        fetch, begun = Fetch(endpoint, tmp_path), len(files.gets)
        goal = files.num_sent + rng.randrange(1, 600_000)
        wait_until(lambda goal=goal: files.num_sent >= goal, "so many bytes")  # type: ignore[misc]
        fetch.kill()
        assert_asked_for_nothing_of(known, files, begun)
        known = verified(tmp_path)
    fetch, begun = Fetch(endpoint, tmp_path), len(files.gets)
    wait_until(lambda: sum(verified(tmp_path).values()) > 0, "a checkpoint")
    fetch.kill()
    assert_asked_for_nothing_of(known, files, begun)
    known = verified(tmp_path)
    files.pause_s, begun = 0.0, len(files.gets)
    code, digest = Fetch(endpoint, tmp_path).said()
    assert code == 0
    assert_asked_for_nothing_of(known, files, begun)
    assert same_bytes(tmp_path / "by-digest" / digest, files.content)
    assert partial(tmp_path) is None


def assert_asked_for_nothing_of(known: dict[str, int], files: Files, begun: int) -> None:
    for get in files.gets[begun:]:
        assert get.offset >= known.get(get.name.removeprefix("models/tiny/"), 0)


def test_two_processes_share_one_download(tmp_path: Path, files: Files, endpoint: str) -> None:
    files.pause_s = 0.02
    both = [Fetch(endpoint, tmp_path) for _ in range(2)]
    ends = [fetch.said() for fetch in both]
    assert [code for code, _ in ends] == [0, 0]
    assert ends[0] == ends[1]
    assert all(len(files.gets_of(name)) == 1 for name, content in files.content.items() if content)


def test_whoever_waits_goes_on_when_the_process_that_fetches_is_killed(
    tmp_path: Path, files: Files, endpoint: str
) -> None:
    files.pause_s = 0.25  # slow enough for the second to start meanwhile
    first = Fetch(endpoint, tmp_path)
    wait_until(lambda: files.num_sent > 0, "the first fetches")
    second = Fetch(endpoint, tmp_path)
    wait_until(lambda: files.lists >= 2, "the second asks")
    wait_until(lambda: sum(verified(tmp_path).values()) > 0, "a checkpoint")
    first.kill()
    files.pause_s = 0.0
    code, digest = second.said()
    assert code == 0
    assert same_bytes(tmp_path / "by-digest" / digest, files.content)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    if not can_mount():
        pytest.skip("needs root, to mount a disk")
    disk = SmallDisk(tmp_path / "disk", num_bytes=48 << 20)
    disk.mount()
    yield disk
    disk.unmount()


def test_a_model_that_does_not_fit_is_refused_before_with_the_figures(
    disk: SmallDisk, files: Files, endpoint: str
) -> None:
    files.content |= model_files("models/big/", size=30 << 20)
    code, said = Fetch(endpoint, disk.folder, "s3://models/big").said()
    assert code == 1
    assert said.startswith("disk_full There is not enough space in")
    assert "MB more are needed there" in said
    assert files.num_sent == 0


def test_a_disk_that_fills_in_the_middle_says_so_and_the_fetch_goes_on_when_there_is_space(
    disk: SmallDisk, files: Files, endpoint: str
) -> None:
    files.content |= model_files("models/big/", size=12 << 20)
    files.pause_s = 0.002
    fetch = Fetch(endpoint, disk.folder, "s3://models/big")
    wait_until(lambda: sum(verified(disk.folder).values()) > 0, "a checkpoint")
    disk.fill()
    code, said = fetch.said()
    assert code == 1
    assert said.startswith("disk_full The disk of")
    assert "goes on where it stopped" in said
    known, begun = verified(disk.folder), len(files.gets)
    disk.empty()
    code, digest = Fetch(endpoint, disk.folder, "s3://models/big").said()
    assert code == 0
    assert all(get.offset >= known.get(get.name.removeprefix("models/big/"), 0) for get in files.gets[begun:])
    assert same_bytes(disk.folder / "by-digest" / digest, files.content, "models/big/")


def test_a_file_that_grows_over_the_process_s_limit_is_a_full_disk(tmp_path: Path, files: Files, endpoint: str) -> None:
    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    code, said = Fetch(endpoint, tmp_path, before=limit).said()
    assert code == 1
    assert said.startswith("disk_full The disk of")


def test_a_folder_without_the_right_to_write_is_named_with_what_to_do(
    tmp_path: Path, files: Files, endpoint: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    models_dir = Path("/tmp") / f"axon-test-{os.getpid()}"
    models_dir.mkdir(mode=0o755)
    try:
        code, said = Fetch(endpoint, models_dir, uid=NOBODY).said()
    finally:
        models_dir.rmdir()
    assert code == 1
    assert said.startswith(f"permission_denied {models_dir}")
    assert "choose another folder with models_dir" in said
    assert files.gets == []
