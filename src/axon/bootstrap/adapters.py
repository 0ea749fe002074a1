"""Fetches the files of LoRA adapters, to register them or to run them. Registers nothing."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from axon.bootstrap.fetching import weights_cache
from axon.domain.adapter import JobAdapter
from axon.domain.registry.adapter import Adapter, AdapterFiles
from axon.errors import InvalidInput, Misconfigured
from axon.runtime.clock import Clock, SystemClock
from axon.settings import Settings
from axon.weights.opening import open_source
from axon.weights.progress import OnProgress, ignore
from axon.weights.source import parse_source
from axon.worker.adapters import Fetch


async def fetch_adapter(
    settings: Settings,
    *,
    model: str,
    label: str,
    source: str,
    tenant: str = "",
    on_progress: OnProgress = ignore,
    clock: Clock | None = None,
) -> Adapter:
    """Fetches what SOURCE has now into the weights cache and checks what can be checked without the model; raises
    ``InvalidInput`` or ``FetchFailed``."""
    location = parse_source(source)
    origin = open_source(location, timeout_s=settings.weights.timeout_s)
    try:
        async with weights_cache(settings).opened(origin, on_progress=on_progress) as weights:
            await asyncio.to_thread(_check, weights.folder, location.text)
    finally:
        await origin.aclose()
    files = AdapterFiles(digest=weights.digest, source=location.text, source_revision=weights.revision)
    now = (clock or SystemClock()).now()
    return Adapter(model=model, label=label, tenant=tenant, files=(files,), created=now)


def fetching(settings: Settings, stack: AsyncExitStack) -> Fetch:
    """What a worker fetches adapters with; they stay in the weights cache until the stack is closed."""

    async def fetch(adapter: JobAdapter) -> Path:
        timeout_s = settings.weights.timeout_s
        origin = open_source(parse_source(adapter.source), revision=adapter.source_revision, timeout_s=timeout_s)
        try:
            opened = weights_cache(settings).opened(origin, digest=adapter.digest)
            return (await stack.enter_async_context(opened)).folder
        finally:
            await origin.aclose()

    return fetch


def _check(folder: Path, source: str) -> None:
    from axon.engine.load.adapter_config import check_adapter

    try:
        check_adapter(folder)
    except Misconfigured as error:
        raise InvalidInput(f"{source} cannot be served: {error.message}", param="source") from error
