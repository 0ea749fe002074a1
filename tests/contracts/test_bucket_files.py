"""Files in a bucket that is not there, is refused or does not answer; and what names a bucket."""

import asyncio
import builtins
import re
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from axon.adapters.files import bucket
from axon.adapters.files.bucket import BucketFiles, Location, location_of
from axon.errors import DependencyDown, Misconfigured, ServiceRefuses
from tests.services import s3
from tests.services.process import free_port
from tests.weights.object_server import Files, s3_server

PLACE = Location(bucket="models", prefix="files/")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.CREDENTIALS.items():
        monkeypatch.setenv(name, value)


async def pieces() -> AsyncIterator[bytes]:
    yield b"abc"


def test_a_bucket_and_a_prefix_are_read_from_the_setting() -> None:
    assert location_of("s3://some-bucket") == Location(bucket="some-bucket", prefix="")
    assert location_of("s3://some.bucket/a/b/") == Location(bucket="some.bucket", prefix="a/b/")
    assert location_of("s3://some.bucket/a/b/").text == "s3://some.bucket/a/b/"


@pytest.mark.parametrize(
    "url",
    ["s3://", "s3:///a", "s3://key:secret@bucket/a", "s3://key:secret/a", "s3://bucket/a?b", "s3://bucket/a/../b"],
)
def test_what_names_no_bucket_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(Misconfigured, match=r"batches\.files_dir") as refused:
        location_of(url)
    assert "secret" not in refused.value.message


@pytest.mark.parametrize("name", ["b", "UPPER", "under_score", "-minus", "a" * 64])
def test_what_no_bucket_can_be_called_is_told_with_the_rule(name: str) -> None:
    with pytest.raises(Misconfigured, match=rf"batches\.files_dir.*'{name}' is no name of a bucket.*3 to 63"):
        location_of(f"s3://{name}/axon")


async def test_a_bucket_that_is_not_there_is_named_at_the_start_and_not_waited_for() -> None:
    files = BucketFiles(Location(bucket="not-there", prefix=""), endpoint=s3.shared_server().url)
    with pytest.raises(ServiceRefuses, match="There is no bucket not-there"):
        await files.open()


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_says_at_the_start_what_to_set_and_later_only_that_files_are_away(status: int) -> None:
    served = Files(content={})
    with s3_server(served) as endpoint:
        files = BucketFiles(PLACE, endpoint=endpoint)
        served.refuse = status
        with pytest.raises(ServiceRefuses, match=r"the files at s3://models/files/: the role .*list, get, put"):
            await files.open()
        served.refuse = 0
        await files.open()
        served.refuse = status
        with pytest.raises(DependencyDown, match=r"^The files cannot be reached\.$") as refused:
            await files.old(before=4e9, limit=1)
        assert refused.value.code == "files_unavailable"
        assert refused.value.retryable


async def test_a_store_that_does_not_answer_is_waited_for_at_the_start() -> None:
    files = BucketFiles(PLACE, endpoint=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(DependencyDown, match=re.escape("the files at s3://models/files/ cannot be reached")) as away:
        await files.open()
    assert away.value.retryable


async def test_a_write_that_the_store_refuses_is_an_error_of_the_service() -> None:
    with s3_server(Files(content={})) as endpoint:  # it takes no PUT
        files = BucketFiles(PLACE, endpoint=endpoint)
        await files.open()
        with pytest.raises(DependencyDown):
            await files.put("file-1", pieces())


async def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("obstore"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Misconfigured, match=r"axon-serving\[fetch\]"):
        await BucketFiles(PLACE).open()


async def test_a_large_write_that_fails_ends_before_all_is_read() -> None:
    num_read, num_pieces = 0, 200

    async def many() -> AsyncIterator[bytes]:
        nonlocal num_read
        for _ in range(num_pieces):
            num_read += 1
            yield bytes(1 << 20)

    with s3_server(Files(content={})) as endpoint:  # it takes no upload
        files = BucketFiles(PLACE, endpoint=endpoint)
        await files.open()
        with pytest.raises(DependencyDown):
            await files.put("file-1", many())
    assert num_read < num_pieces


async def test_a_variable_that_cannot_be_read_is_a_mistake_in_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "maybe")
    with pytest.raises(Misconfigured, match=r"AWS_ variables.*maybe"):
        await BucketFiles(PLACE).open()


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
@pytest.mark.parametrize("value", ["not a url", "ftp://store", "http://", "http://[", "store:9000"])
async def test_an_endpoint_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(Misconfigured, match=f"{name} must be a URL"):
        await BucketFiles(PLACE).open()


async def test_whatever_is_not_found_at_the_start_is_the_bucket() -> None:
    with (
        s3_server(Files(content={}, refuse=404)) as endpoint,
        pytest.raises(ServiceRefuses, match="There is no bucket models"),
    ):
        await BucketFiles(PLACE, endpoint=endpoint).open()


async def test_a_listing_that_nobody_waits_for_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    import obstore

    ended = threading.Event()

    def endless(*_: Any, **__: Any) -> Iterator[list[Any]]:
        try:
            while not ended.wait(0.01):
                yield []
        finally:
            ended.set()

    with s3_server(Files(content={})) as endpoint:
        files = BucketFiles(PLACE, endpoint=endpoint)
        await files.open()
        monkeypatch.setattr(obstore, "list", endless)
        monkeypatch.setattr(bucket, "_LISTING_S", 0.05)
        with pytest.raises(DependencyDown):
            await files.old(before=4e9, limit=1)
        found = await asyncio.to_thread(ended.wait, 10)
        ended.set()
    assert found
