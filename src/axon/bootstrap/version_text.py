"""Loads the tokenizer and template of a registered version from its source, and checks that they are its own."""

import asyncio
from collections.abc import Awaitable, Callable

from axon.bootstrap.deployed import settings_of
from axon.bootstrap.fetching import fetch_version_text
from axon.bootstrap.model import prepare_text
from axon.domain.registry.version import Version
from axon.errors import AxonError, Unavailable
from axon.sessions.prompt import Prompts, Threads
from axon.settings import Settings

_RETRY_AFTER_S = 10.0


def text_loader(settings: Settings, threads: Threads) -> Callable[[Version], Awaitable[Prompts]]:
    """A function that loads the text of a version; it raises ``Unavailable`` with the reason if that cannot be had."""

    async def load(version: Version) -> Prompts:
        try:
            if version.settings.kind == "echo":
                text = await asyncio.to_thread(prepare_text, settings_of(settings, version))
            else:
                text = await fetch_version_text(settings, version)
        except AxonError as error:
            raise _not_loaded(version, error.message) from error
        if text.mark != version.text:
            raise _not_loaded(version, "the files of its source have changed since it was registered.")
        return Prompts(text.tokenizer, text.template, threads)

    return load


def _not_loaded(version: Version, reason: str) -> Unavailable:
    return Unavailable(
        f"The tokenizer of {version.id} cannot be loaded from {version.source}: {reason}",
        code="text_unavailable",
        retry_after_s=_RETRY_AFTER_S,
    )
