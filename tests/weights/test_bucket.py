"""Errors of an S3-compatible store, each with what to do; and names that a bucket must not have."""

import builtins
from typing import Any

import pytest

from axon.errors import FetchFailed, InvalidInput, Misconfigured
from axon.weights.cache import WeightsCache
from axon.weights.source import StatedFile
from tests.weights.conftest import bucket_source
from tests.weights.object_server import Files


async def test_all_pages_of_a_listing_are_read(files: Files, endpoint: str) -> None:
    listed = {file.name: file.size for file in (await bucket_source(endpoint).listing()).files}
    assert listed == {name.removeprefix("models/tiny/"): len(content) for name, content in files.content.items()}
    assert files.lists > 1


@pytest.mark.parametrize(("status", "said"), [(401, "AWS_ACCESS_KEY_ID"), (403, "AWS_ACCESS_KEY_ID"), (404, "check")])
async def test_a_refusal_says_what_to_set(files: Files, endpoint: str, status: int, said: str) -> None:
    files.refuse = status
    with pytest.raises(FetchFailed, match=said) as refused:
        await bucket_source(endpoint).listing()
    assert not refused.value.retryable


async def test_a_prefix_with_nothing_below_it_is_named(endpoint: str) -> None:
    with pytest.raises(FetchFailed, match="nothing below s3://models/other"):
        await bucket_source(endpoint, "s3://models/other").listing()


async def test_a_store_that_does_not_answer_may_be_asked_again() -> None:
    with pytest.raises(FetchFailed, match="Check the network and AWS_ENDPOINT_URL") as refused:
        await bucket_source("http://127.0.0.1:9").listing()
    assert refused.value.retryable


async def test_an_object_that_changes_during_its_fetch_is_noticed(files: Files, endpoint: str) -> None:
    source = bucket_source(endpoint)
    listed = {file.name: file for file in (await source.listing()).files}
    files.content["models/tiny/config.json"] = b"{}"
    with pytest.raises(FetchFailed, match="has changed while it was fetched"):
        _ = [chunk async for chunk in source.read(listed["config.json"], 0)]


async def test_a_bucket_with_a_name_that_leads_out_is_refused(cache: WeightsCache, monkeypatch: Any) -> None:
    source = bucket_source("http://127.0.0.1:9")

    async def listing() -> Any:
        from axon.weights.source import Listing

        return Listing(files=(StatedFile(name="model.safetensors", size=1), StatedFile(name="../../x", size=1)))

    monkeypatch.setattr(source, "listing", listing)
    with pytest.raises(InvalidInput, match="leads out of the folder"):
        async with cache.opened(source):
            pass


async def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("obstore"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Misconfigured, match=r"install axon-serving\[fetch\]"):
        await bucket_source("http://127.0.0.1:9").listing()
