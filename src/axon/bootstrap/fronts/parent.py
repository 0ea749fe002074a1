"""``axon gateway`` as several processes: the parent of its fronts, which serves no request itself."""

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from axon.bootstrap.fronts.fronts import Fronts
from axon.bootstrap.fronts.messages import Began, Start, pack
from axon.bootstrap.gateway import Ready
from axon.bootstrap.process import announced, bound_together, counted, started
from axon.runtime.datafolder import shared
from axon.settings import Settings

CLOSE_S = 10.0
"""Seconds for the fronts to end after they have drained."""


async def serve_gateways(settings: Settings, num: int, *, on_ready: Callable[[Ready], None]) -> int:
    """Runs ``num`` gateways on one port until a signal stops them; returns the exit code."""
    config = settings.gateway
    with (
        shared(settings.data_dir),
        started(settings) as process,
        bound_together(config.host, config.port, "--port", num) as listeners,
    ):
        url = f"http://{config.host}:{listeners[0].getsockname()[1]}"
        fronts = Fronts(listeners, process.clock)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(fronts.aclose)
            probing = process.probed(
                *(config.metrics_host, config.metrics_port, "--metrics-port"),
                lambda: fronts.is_ready,
                fronts.scrape,
            )
            probes_url = stack.enter_context(probing)
            await fronts.open()
            began = await process.unless_stopped(fronts.start(Start(settings=packed(settings))))
            if began is None:
                return 0

            async def begun() -> None:
                process.lifecycle.ready = True
                stack.enter_context(announced(settings.data_dir / "server", url))
                on_ready(ready_of(settings, began, url, probes_url))

            async def tell() -> None:
                await process.lifecycle.stopping.wait()
                fronts.stop()

            async def drain() -> None:
                fronts.leave_port()
                fronts.drain()
                await fronts.ended(settings.lifecycle.drain_s + CLOSE_S)

            return await process.run(
                (fronts.run, tell), started=begun, drain=drain, running=lambda: counted(fronts.num_requests, "request")
            )


def packed(settings: Settings) -> bytes:
    """The settings of a front: its parent keeps the notice, and tells it when that is over."""
    return pack(replace(settings, lifecycle=replace(settings.lifecycle, notice_s=0.0)))


def ready_of(settings: Settings, began: Sequence[Began], url: str, probes_url: str) -> Ready:
    """What all fronts together are to the terminal."""
    return Ready(
        url=url,
        metrics_url=f"{probes_url}/metrics",
        key=next((each.key for each in began if each.key), None),
        key_file=settings.data_dir / "dev-key",
        models=tuple(each.model_name for each in settings.each_model()),
        pid=os.getpid(),
        waits=all(each.waits for each in began),
        num_fronts=len(began),
    )
