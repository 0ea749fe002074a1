"""A hub's repository over real HTTP: pinned to its commit, checked, resumed, refused with what to do."""

from collections.abc import Iterator
from contextlib import aclosing

import pytest
from huggingface_hub import close_session

from axon.errors import FetchFailed, InvalidInput
from axon.weights.cache import WeightsCache
from axon.weights.hub import HubSource
from axon.weights.source import HubRepo, Listing, parse_source
from tests.weights.conftest import model_files, same_bytes
from tests.weights.object_server import COMMIT, Fault, Files, hub_server

WEIGHTS = "model-00001-of-00002.safetensors"


@pytest.fixture
def files() -> Files:
    return Files(model_files("maker/tiny/"))


@pytest.fixture
def endpoint(files: Files) -> Iterator[str]:
    with hub_server(files) as url:
        yield url
    close_session()  # the library keeps connections for the next call


def hub_source(endpoint: str, text: str = "hf://maker/tiny@main", revision: str = "") -> HubSource:
    location = parse_source(text)
    assert isinstance(location, HubRepo)
    return HubSource(location, endpoint=endpoint, revision=revision, timeout_s=60.0)


async def listing_of(source: HubSource) -> Listing:
    async with aclosing(source):
        return await source.listing()


async def test_a_repository_is_fetched_at_its_commit(cache: WeightsCache, files: Files, endpoint: str) -> None:
    source = hub_source(endpoint)
    async with cache.opened(source) as weights:
        assert same_bytes(weights.folder, files.content, "maker/tiny/")
        assert weights.manifest.revision == COMMIT
    await source.aclose()


async def test_a_fetch_goes_on_by_range_and_a_wrong_byte_is_noticed(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    faults = [Fault(flip_at=2_000_000), Fault(cut_after=1 << 20)]
    files.fault = lambda get: faults.pop() if faults and get.name.endswith(WEIGHTS) else None
    small = [Fault(flip_at=3)]
    weights_fault = files.fault
    files.fault = lambda get: small.pop() if small and get.name.endswith("config.json") else weights_fault(get)
    source = hub_source(endpoint)
    async with cache.opened(source) as weights:
        assert same_bytes(weights.folder, files.content, "maker/tiny/")
    assert [get.offset > 0 for get in files.gets_of(f"maker/tiny/{WEIGHTS}")] == [False, True, False]
    assert len(files.gets_of("maker/tiny/config.json")) == 2
    await source.aclose()


async def test_the_token_of_the_environment_opens_a_private_repository(
    cache: WeightsCache, files: Files, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.token = "hf_secret"
    with pytest.raises(FetchFailed, match="set HF_TOKEN"):
        await listing_of(hub_source(endpoint))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    source = hub_source(endpoint)
    async with cache.opened(source) as weights:
        assert same_bytes(weights.folder, files.content, "maker/tiny/")
    await source.aclose()


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        (401, "set HF_TOKEN", "source_not_found"),
        (403, "accept its terms", "source_forbidden"),
        (404, "check the name", "source_not_found"),
        (400, "answered 400", "fetch_failed"),
    ],
)
async def test_a_refusal_of_the_hub_says_what_to_do(
    files: Files, endpoint: str, status: int, said: str, code: str
) -> None:
    files.refuse = status
    with pytest.raises(FetchFailed, match=said) as refused:
        await listing_of(hub_source(endpoint))
    assert refused.value.code == code
    assert not refused.value.retryable


async def test_a_revision_that_is_not_there_is_named(endpoint: str) -> None:
    with pytest.raises(FetchFailed, match="has no revision v9"):
        await listing_of(hub_source(endpoint, "hf://maker/tiny@v9"))


async def test_a_hub_that_cannot_be_reached_may_be_asked_again() -> None:
    with pytest.raises(FetchFailed, match=r"cannot be reached.*HF_ENDPOINT") as refused:
        await listing_of(hub_source("http://127.0.0.1:9"))
    assert refused.value.retryable


async def test_one_file_of_a_repository_with_several_is_named_in_the_source(
    cache: WeightsCache, files: Files, endpoint: str
) -> None:
    files.content = {"maker/tiny/Q4.gguf": b"GGUF" + bytes(100), "maker/tiny/Q8.gguf": b"GGUF" + bytes(200)}
    source = hub_source(endpoint)
    with pytest.raises(InvalidInput, match="add the name of one"):
        async with aclosing(source), cache.opened(source):
            pass
    source = hub_source(endpoint, "hf://maker/tiny@main/Q4.gguf")
    async with cache.opened(source) as weights:
        assert [entry.name for entry in weights.manifest.files] == ["Q4.gguf"]
    await source.aclose()
