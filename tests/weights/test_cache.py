"""The weights cache against a real HTTP server: fetched, resumed, checked, mended, shared, evicted."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axon.errors import FetchFailed, InvalidInput
from axon.weights.cache import Weights, WeightsCache
from axon.weights.checking import CTIME_STEP_S
from axon.weights.config import WeightsConfig
from axon.weights.manifest import read_manifest
from axon.weights.names import MANIFEST
from axon.weights.source import Source
from tests.journeys.server import wait_until
from tests.weights.conftest import CHECKPOINT, QUICK, bucket_source, model_files, same_bytes
from tests.weights.object_server import Fault, Files, Get

if TYPE_CHECKING:
    from axon.weights.progress import Progress

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


async def opened(cache: WeightsCache, source: Source, digest: str = "", full: bool = False) -> Weights:
    async with cache.opened(source, digest=digest, full=full) as weights:
        return weights


async def test_a_model_of_a_bucket_is_fetched_once_with_its_digest(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    source = bucket_source(endpoint)
    first = await opened(cache, source)
    sent = files.num_sent
    assert same_bytes(first.folder, files.content)
    assert first.folder.name == first.digest == first.manifest.digest
    again = await opened(cache, source)
    by_digest = await opened(cache, source, digest=first.digest)
    assert again.digest == by_digest.digest == first.digest
    assert files.num_sent == sent


async def test_what_is_here_is_opened_without_asking_the_source(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    digest = (await opened(cache, bucket_source(endpoint))).digest
    files.refuse = 403
    assert (await opened(cache, bucket_source(endpoint), digest=digest)).digest == digest


async def test_progress_ends_at_the_total_and_has_a_rate(cache: WeightsCache, files: Files, endpoint: str) -> None:
    seen: list[Progress] = []
    files.pause_s = 0.005
    async with cache.opened(bucket_source(endpoint), on_progress=seen.append) as weights:
        assert seen[-1].done_bytes == seen[-1].total_bytes == weights.manifest.num_bytes
    assert seen[0].done_bytes == 0
    assert seen[-1].rate > 0
    assert {each.stage for each in seen} == {"fetching"}


async def test_cut_connections_and_busy_servers_are_tried_again_without_fetching_twice(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    faults = [Fault(status=503), Fault(cut_after=1 << 20), Fault(status=500), Fault(cut_after=700_000)]
    files.fault = lambda get: faults.pop() if faults and get.name.endswith(FIRST) else None
    weights = await opened(cache, bucket_source(endpoint))
    assert same_bytes(weights.folder, files.content)
    assert files.num_sent < sum(map(len, files.content.values())) + (1 << 20) + (256 << 10)


async def test_a_byte_that_is_flipped_on_the_way_is_noticed_and_fetched_again(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    faults = [Fault(flip_at=1_000_000)]
    files.fault = lambda get: faults.pop() if faults and get.name.endswith(FIRST) else None
    assert same_bytes((await opened(cache, bucket_source(endpoint))).folder, files.content)
    assert len(files.gets_of(f"models/tiny/{FIRST}")) == 2


async def test_a_file_that_never_has_its_checksum_is_refused_with_what_to_do(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    name = f"models/tiny/{SECOND}"
    files.content["models/tiny/SHA256SUMS"] = f"{'0' * 64}  ./{SECOND}\n".encode()
    with pytest.raises(FetchFailed, match=r"differs from its checksum after 2 downloads.*Upload it again") as refused:
        await opened(cache, bucket_source(endpoint))
    assert refused.value.code == "checksum_mismatch"
    assert len(files.gets_of(name)) == 2


async def test_an_etag_that_is_no_md5_is_believed_after_two_equal_downloads(
    cache: WeightsCache, files: Files, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    etags = {name: f'"{index:032x}"' for index, name in enumerate(files.content)}
    monkeypatch.setattr(Files, "etag", lambda _, name: etags[name])
    assert same_bytes((await opened(cache, bucket_source(endpoint))).folder, files.content)
    assert len(files.gets_of(f"models/tiny/{FIRST}")) == 2


@pytest.mark.parametrize("keeps_times", [False, True])
async def test_a_flipped_byte_on_disk_is_found_at_open_and_mended(
    cache: WeightsCache, files: Files, endpoint: str, keeps_times: bool
) -> None:
    source = bucket_source(endpoint)
    weights = await opened(cache, source)
    path = weights.folder / FIRST
    flip(path, keeps_times=keeps_times)
    sent, gets = files.num_sent, len(files.gets)
    mended = await opened(cache, source, digest=weights.digest)
    assert same_bytes(mended.folder, files.content)
    assert files.num_sent - sent == len(files.content[f"models/tiny/{FIRST}"])
    assert len(files.gets) - gets == 1
    await opened(cache, source, digest=weights.digest)
    assert len(files.gets) - gets == 1


async def test_bits_that_a_disk_loses_are_found_by_a_full_check_and_after_a_reboot(
    tmp_path: Path, files: Files, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that loses bits changes no time: the stamp that the last check saw is made to match."""
    from axon.weights import checking

    cache = WeightsCache(tmp_path, QUICK)
    source = bucket_source(endpoint)
    weights = await opened(cache, source)
    path = weights.folder / FIRST
    real = checking.stamp
    before = real(path)
    monkeypatch.setattr(checking, "stamp", lambda each: before if each == path else real(each))
    flip(path, keeps_times=True)
    await opened(cache, source, digest=weights.digest)
    assert not same_bytes(weights.folder, files.content)
    monkeypatch.setattr(checking, "boot_id", lambda: "another")
    await opened(cache, source, digest=weights.digest)
    assert same_bytes(weights.folder, files.content)
    flip(path, keeps_times=True)
    await opened(cache, source, digest=weights.digest, full=True)
    assert same_bytes(weights.folder, files.content)


async def test_a_file_that_is_cut_short_missing_or_a_link_is_mended(
    cache: WeightsCache, files: Files, endpoint: str, tmp_path: Path
) -> None:
    source = bucket_source(endpoint)
    weights = await opened(cache, source)
    os.truncate(weights.folder / FIRST, 1000)
    (weights.folder / SECOND).unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(files.content["models/tiny/config.json"])
    (weights.folder / "config.json").unlink()
    (weights.folder / "config.json").symlink_to(elsewhere)
    assert same_bytes((await opened(cache, source, digest=weights.digest)).folder, files.content)
    assert not (weights.folder / "config.json").is_symlink()


async def test_damage_that_the_source_cannot_mend_says_what_is_damaged_and_why(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    source = bucket_source(endpoint)
    weights = await opened(cache, source)
    flip(weights.folder / FIRST)
    files.refuse = 403
    with pytest.raises(FetchFailed, match=rf"{FIRST} in .* is damaged and cannot be fetched again.*AWS_ACCESS_KEY_ID"):
        await opened(cache, source, digest=weights.digest)


async def test_a_source_that_has_changed_since_its_version_was_registered_is_refused(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    source = bucket_source(endpoint)
    with pytest.raises(FetchFailed, match="has changed since the version was registered"):
        await opened(cache, source, digest="0" * 64)


async def test_many_who_ask_at_once_share_one_download(tmp_path: Path, files: Files, endpoint: str) -> None:
    files.pause_s = 0.01
    seen: list[Progress] = []

    async def ask() -> str:
        cache = WeightsCache(tmp_path, QUICK)
        async with cache.opened(bucket_source(endpoint), on_progress=seen.append) as weights:
            return weights.digest

    digests = await asyncio.gather(*(ask() for _ in range(4)))
    assert len(set(digests)) == 1
    assert all(len(files.gets_of(name)) == 1 for name, content in files.content.items() if content)
    assert any(each.stage == "waiting" and each.done_bytes > 0 for each in seen)


async def test_eviction_takes_the_least_recently_used_and_never_what_is_open(
    tmp_path: Path, files: Files, endpoint: str
) -> None:
    for number in range(4):
        files.content |= model_files(f"models/m{number}/", seed=number, size=1 << 20)
    one = sum(len(content) for name, content in files.content.items() if name.startswith("models/m0/"))
    cache = WeightsCache(tmp_path, WeightsConfig(retry_s=0.01, limit_gb=2.5 * one / 1e9))
    sources = [bucket_source(endpoint, f"s3://models/m{number}") for number in range(4)]
    async with cache.opened(sources[0]) as first:
        second = await opened(cache, sources[1])
        third = await opened(cache, sources[2])
        assert first.folder.exists()
        assert not second.folder.exists()
        async with cache.opened(sources[2], digest=third.digest):
            with pytest.raises(FetchFailed, match=r"weights.limit_gb allows .* are in use") as refused:
                await opened(cache, sources[3])
            assert refused.value.code == "disk_full"
        assert third.folder.exists()
    await asyncio.sleep(2 * CTIME_STEP_S)  # a later use gets a later time
    await opened(cache, sources[2], digest=third.digest)
    fourth = await opened(cache, sources[3])
    assert fourth.folder.exists()
    assert not first.folder.exists()
    assert third.folder.exists()


async def test_two_models_with_the_same_files_are_kept_once(cache: WeightsCache, files: Files, endpoint: str) -> None:
    files.content |= model_files("models/copy/")
    one = await opened(cache, bucket_source(endpoint))
    other = await opened(cache, bucket_source(endpoint, "s3://models/copy"))
    assert one.folder == other.folder
    assert len(cache.kept()) == 1


async def test_a_server_that_falls_silent_ends_the_fetch_with_a_retryable_error(
    tmp_path: Path, files: Files, endpoint: str
) -> None:
    files.pause_s = 60.0
    cache = WeightsCache(tmp_path, WeightsConfig(retry_s=0.01, timeout_s=0.2, tries=2), checkpoint_bytes=CHECKPOINT)
    with pytest.raises(FetchFailed, match="No byte came for") as refused:
        await opened(cache, bucket_source(endpoint))
    assert refused.value.retryable


async def test_a_manifest_that_is_not_that_of_its_digest_is_as_good_as_none(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    source = bucket_source(endpoint)
    weights = await opened(cache, source)
    path = weights.folder / MANIFEST
    digest = weights.manifest.files[-1].sha256
    path.write_text(path.read_text().replace(digest, "0" * 64))
    again = await opened(cache, source, digest=weights.digest)
    assert again.manifest.digest == weights.digest
    assert same_bytes(again.folder, files.content)


@pytest.mark.parametrize("digest", ["x", "../" * 21 + "a", "A" * 64, "0" * 63])
async def test_what_is_no_digest_names_no_folder(cache: WeightsCache, digest: str) -> None:
    with pytest.raises(InvalidInput, match="is no digest"):
        await opened(cache, bucket_source("http://127.0.0.1:9"), digest=digest)


async def test_what_a_stopped_fetch_left_is_checked_before_it_is_gone_on_with(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    def fault(get: Get) -> Fault | None:
        if not get.name.endswith(SECOND):
            return None
        wait_until(lambda: whole(cache, FIRST), "the other file is there")
        return Fault(status=404)

    files.fault = fault
    with pytest.raises(FetchFailed):
        await opened(cache, bucket_source(endpoint))
    (left,) = [each.folder for each in cache.kept()]
    for path in left.glob("*.safetensors"):
        path.write_bytes(bytes(path.stat().st_size))
    files.fault = lambda _: None
    assert same_bytes((await opened(cache, bucket_source(endpoint))).folder, files.content)


async def test_a_whole_file_is_not_noted_before_its_checksum_was_compared(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    """A process that is killed between the two would leave wrong bytes that the next one takes for verified."""
    files.content = {
        "models/tiny/model.safetensors": bytes(8 * CHECKPOINT),
        "models/tiny/SHA256SUMS": f"{'0' * 64}  model.safetensors\n".encode(),
    }
    for _ in range(2):
        with pytest.raises(FetchFailed, match="differs from its checksum"):
            await opened(cache, bucket_source(endpoint))
        assert not whole(cache, "model.safetensors")


def whole(cache: WeightsCache, name: str) -> bool:
    """Whether an unfinished fetch has noted the whole file."""
    found = [read_manifest(folder) for folder in (cache.root / "fetching").iterdir() if folder.is_dir()]
    return any(entry.is_whole for each in found if each for entry in each.files if entry.name == name)


def flip(path: Path, *, keeps_times: bool = False) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(1234)
        byte = file.read(1)[0]
        file.seek(1234)
        file.write(bytes([byte ^ 1]))
    if keeps_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
