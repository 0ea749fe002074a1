"""``axon gateway`` as several processes: the parent of its fronts, which serves no request itself."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from axon.bootstrap.fronts.fronts import Fronts
from axon.bootstrap.fronts.messages import Began, Start, pack
from axon.bootstrap.gateway.grpc import grpc_address, grpc_reserved
from axon.bootstrap.process import Process, announced, bound_together, counted, started
from axon.bootstrap.ready import Ready
from axon.runtime.datafolder import shared
from axon.settings import Settings

CLOSE_S = 10.0
"""Seconds for the fronts to end after they have drained."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A parent whose fronts are started, and serve nothing yet."""

    process: Process
    fronts: Fronts
    stack: AsyncExitStack
    """What is entered here ends before the fronts do."""
    url: str
    probes_url: str
    settings: Settings
    """Those of the fronts, with the number of their gRPC port."""

    def come_up(self, began: Sequence[Began]) -> Ready:
        """Says that it is ready, in the data folder too for as long as it runs; returns what the terminal is told."""
        settings = self.settings
        self.process.lifecycle.ready = True
        self.stack.enter_context(announced(settings.data_dir / "server", self.url))
        return _ready_of(settings, began, self.url, self.probes_url)

    async def tell(self) -> None:
        """Tells the fronts of the stop when it comes."""
        await self.process.lifecycle.stopping.wait()
        self.fronts.stop()


@asynccontextmanager
async def opened(settings: Settings, num: int) -> AsyncIterator[Opened]:
    """Binds the port ``num`` times, answers probes and starts the fronts, which then import the web framework."""
    config = settings.gateway
    with (
        grpc_reserved(settings) as settings,
        started(settings, "axon-gateway") as process,
        bound_together(config.host, config.port, "--port", num) as listeners,
    ):
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
            url = f"http://{config.host}:{listeners[0].getsockname()[1]}"
            yield Opened(process, fronts, stack, url, probes_url, settings)


async def serve_gateways(settings: Settings, num: int, *, on_ready: Callable[[Ready], None]) -> int:
    """Runs ``num`` gateways on one port until a signal stops them; returns the exit code."""
    with shared(settings.data_dir):
        async with opened(settings, num) as parent:
            process, fronts = parent.process, parent.fronts
            began = await process.unless_stopped(fronts.start(Start(settings=packed(parent.settings))))
            if began is None:
                return 0

            async def begun() -> None:
                on_ready(parent.come_up(began))

            async def drain() -> None:
                fronts.leave_port()
                fronts.drain()
                await fronts.ended(settings.lifecycle.drain_s + CLOSE_S)

            return await process.run(
                (fronts.run, parent.tell),
                started=begun,
                drain=drain,
                running=lambda: counted(fronts.num_requests, "request"),
            )


def packed(settings: Settings) -> bytes:
    """The settings of a front: its parent keeps the notice, and tells it when that is over."""
    return pack(replace(settings, lifecycle=replace(settings.lifecycle, notice_s=0.0)))


def _ready_of(settings: Settings, began: Sequence[Began], url: str, probes_url: str) -> Ready:
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
        path_prefix=settings.gateway.path_prefix,
        grpc=grpc_address(settings),
    )
