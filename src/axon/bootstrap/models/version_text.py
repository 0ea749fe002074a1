"""Loads the tokenizer and template of a registered version from its source, and checks that they are its own."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from axon.bootstrap.models.fetching import fetch_version_text
from axon.bootstrap.models.model import Text, prepare_text
from axon.bootstrap.models.version_settings import settings_of
from axon.domain.registry.version import Version
from axon.errors import AxonError, FetchFailed, Unavailable
from axon.sessions.prompt import Prompts, Threads
from axon.settings import Settings

_RETRY_AFTER_S = 10.0

_logger = structlog.get_logger("axon.gateway")


def text_loader(settings: Settings, threads: Threads) -> Callable[[Version], Awaitable[Prompts]]:
    """A function that loads the text of a version; it raises ``Unavailable`` if that cannot be had.

    The reason is for the operator: it names sources and folders, so the log has it and no tenant is told.
    """

    async def load(version: Version) -> Prompts:
        try:
            text = await _loaded(settings, version)
        except Exception as error:  # a source may have any file
            reason = error.message if isinstance(error, AxonError) else f"{type(error).__name__}: {error}"
            _logger.error("text.not_loaded", version=version.id, source=version.source, error=reason)
            raise Unavailable(
                f"The tokenizer of {version.id} cannot be loaded now; try again later.",
                code="text_unavailable",
                retry_after_s=_RETRY_AFTER_S,
            ) from error
        return Prompts(text.tokenizer, text.template, threads)

    return load


async def _loaded(settings: Settings, version: Version) -> Text:
    if version.settings.kind != "echo":
        return await fetch_version_text(settings, version)
    text = await asyncio.to_thread(prepare_text, settings_of(settings, version))
    if text.mark != version.text:
        raise FetchFailed(f"the fingerprint was {version.text} and is {text.mark}.", code="source_changed")
    return text
