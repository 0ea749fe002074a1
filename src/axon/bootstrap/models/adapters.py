"""Fetches the files of LoRA adapters, to register them or to run them. Registers nothing."""

import asyncio
from pathlib import Path

from axon.bootstrap.models.fetching import weights_cache
from axon.domain.model.adapter import JobAdapter
from axon.domain.registry.adapter import Adapter
from axon.domain.registry.adapter import AdapterFiles as RegisteredFiles
from axon.errors import InvalidInput, Misconfigured
from axon.runtime.clock import Clock, SystemClock
from axon.settings import Settings
from axon.weights.opening import open_source
from axon.weights.progress import OnProgress, ignore
from axon.weights.source import parse_source
from axon.worker.adapters import AdapterFiles, Fetch


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
    files = RegisteredFiles(digest=weights.digest, source=location.text, source_revision=weights.revision)
    now = (clock or SystemClock()).now()
    return Adapter(model=model, label=label, tenant=tenant, files=(files,), created=now)


def fetching(settings: Settings) -> Fetch:
    """Returns what a worker fetches adapters with, into the weights cache; whoever asks closes the files."""

    async def fetch(adapter: JobAdapter) -> AdapterFiles:
        timeout_s = settings.weights.timeout_s
        origin = open_source(parse_source(adapter.source), revision=adapter.source_revision, timeout_s=timeout_s)
        try:
            held = await weights_cache(settings).held(origin, digest=adapter.digest)
        except BaseException:
            await origin.aclose()
            raise
        try:
            await origin.aclose()
        except BaseException:
            held.close()
            raise
        return held

    return fetch


def _check(folder: Path, source: str) -> None:
    from axon.engine.load.adapter_config import check_adapter

    try:
        check_adapter(folder)
    except Misconfigured as error:
        raise InvalidInput(f"{source} cannot be served: {error.message}", param="source") from error
