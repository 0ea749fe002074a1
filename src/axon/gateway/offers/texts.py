"""Tokenizers and templates of registered versions: loaded when first asked for, the last used ones kept."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from axon.domain.registry.version import Version
from axon.errors import AxonError, Unavailable
from axon.sessions.prompt import Prompts

_WAIT_S = 30.0
"""Seconds that a request waits for a text; it is loaded further meanwhile."""
_RETRY_AFTER_S = 5.0
_REST_S = 10.0
"""Seconds after a loading has failed until the next one: tenants do not decide how often a hub is asked."""
Load = Callable[[Version], Awaitable[Prompts]]


class LoadedTexts:
    """At most ``keep`` of them, by their fingerprint; versions with the same text share one."""

    def __init__(self, load: Load, *, keep: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``load`` reads the text of a version; it raises if that cannot be had."""
        self._load, self._keep, self._monotonic = load, keep, monotonic
        self._loaded: OrderedDict[str, Prompts] = OrderedDict()
        self._loading: dict[str, asyncio.Task[Prompts]] = {}
        self._failed: dict[str, tuple[float, AxonError]] = {}
        """By the id of the version: when its last loading failed, and why."""

    async def of(self, version: Version) -> Prompts:
        """The text of a version. Requests that come while it is loaded wait for the same loading."""
        mark = version.text
        if mark in self._loaded:
            self._loaded.move_to_end(mark)
            return self._loaded[mark]
        task = self._loading.get(mark)
        if task is None:
            self._check_rested(version)
            task = self._loading[mark] = asyncio.create_task(self._fill(version))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may be that nobody waits
        try:
            async with asyncio.timeout(_WAIT_S):
                return await asyncio.shield(task)
        except TimeoutError:
            message = f"The tokenizer of {version.id} is still being fetched; try again soon."
            raise Unavailable(message, code="text_unavailable", retry_after_s=_RETRY_AFTER_S) from None

    def _check_rested(self, version: Version) -> None:
        """Raises the error of the last loading again if it failed a short time ago."""
        now = self._monotonic()
        self._failed = {each: failed for each, failed in self._failed.items() if now - failed[0] < _REST_S}
        if version.id in self._failed:
            error = self._failed[version.id][1]
            raise Unavailable(error.message, code=error.code, retry_after_s=error.retry_after_s)

    async def _fill(self, version: Version) -> Prompts:
        try:
            prompts = self._loaded[version.text] = await self._load(version)
        except AxonError as error:
            self._failed[version.id] = self._monotonic(), error
            raise
        finally:
            del self._loading[version.text]
        while len(self._loaded) > self._keep:
            self._loaded.popitem(last=False)
        return prompts

    def close(self) -> None:
        """Gives up what is being loaded."""
        for task in self._loading.values():
            task.cancel()
