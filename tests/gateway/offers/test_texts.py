import asyncio
from dataclasses import replace

import pytest

from axon.domain.registry.version import Version
from axon.errors import Unavailable
from axon.gateway.offers.texts import LoadedTexts
from axon.runtime.clock import FakeClock
from axon.sessions.prompt import Prompts
from tests.domain.registry.builders import version
from tests.gateway.offers.builders import make_prompts


class Loader:
    """Counts what is loaded; waits while it is held."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.free = asyncio.Event()
        self.free.set()
        self.error: Unavailable | None = None

    async def __call__(self, of: Version) -> Prompts:
        self.loaded.append(of.text)
        await self.free.wait()
        if self.error:
            raise self.error
        return make_prompts()


def text(mark: str) -> Version:
    return replace(version(), text=mark)


async def test_versions_with_the_same_text_share_one() -> None:
    loader = Loader()
    texts = LoadedTexts(loader, keep=2)
    assert await texts.of(text("a")) is await texts.of(replace(text("a"), label="v2"))
    assert loader.loaded == ["a"]


async def test_many_who_ask_at_once_wait_for_one_loading() -> None:
    loader = Loader()
    loader.free.clear()
    texts = LoadedTexts(loader, keep=2)
    asking = [asyncio.create_task(texts.of(text("a"))) for _ in range(5)]
    await asyncio.sleep(0)
    asking[0].cancel()
    loader.free.set()
    found = await asyncio.gather(*asking[1:])
    assert len(set(map(id, found))) == 1
    assert loader.loaded == ["a"]


async def test_the_least_recently_used_goes_first() -> None:
    loader = Loader()
    texts = LoadedTexts(loader, keep=2)
    for mark in ("a", "b", "a", "c", "a", "b"):
        await texts.of(text(mark))
    assert loader.loaded == ["a", "b", "c", "b"]


async def test_a_loading_that_failed_is_tried_again_after_a_rest() -> None:
    loader, clock = Loader(), FakeClock()
    loader.error = Unavailable("away", code="text_unavailable", retry_after_s=10.0)
    texts = LoadedTexts(loader, keep=2, monotonic=clock.monotonic)
    for _ in range(20):
        with pytest.raises(Unavailable, match="away") as refusal:
            await texts.of(text("a"))
        assert (refusal.value.code, refusal.value.retry_after_s) == ("text_unavailable", 10.0)
    assert loader.loaded == ["a"]
    loader.error = None
    await texts.of(replace(text("b"), label="v2"))
    clock.advance(11.0)
    await texts.of(text("a"))
    assert loader.loaded == ["a", "b", "a"]
