"""A load that several processes ask for: one Python client reads fewer tokens than a GPU's engine writes. Starts no
server.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType

import uvloop

from benchmarks.measures.load import Ask, Endpoint, Ran, run_asks


class Clients:
    """So many client processes, started once, each with its part of the streams."""

    def __init__(self, num: int) -> None:
        self._pools = [ProcessPoolExecutor(1, mp_context=get_context("spawn")) for _ in range(num)]

    def __enter__(self) -> "Clients":
        for started in [pool.submit(int) for pool in self._pools]:
            started.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    def run(self, endpoint: Endpoint, asks: Sequence[Ask], *, num_streams: int) -> Ran:
        """Asks for all, ``num_streams`` at once over all clients; a client without a stream asks for nothing."""
        shares = to_shares(asks, num_streams, len(self._pools))
        asking = [
            pool.submit(_run, endpoint, part, num) for pool, (part, num) in zip(self._pools, shares, strict=False)
        ]
        return joined([each.result() for each in asking])


def to_shares(asks: Sequence[Ask], num_streams: int, num_clients: int) -> list[tuple[list[Ask], int]]:
    """The requests and the number of streams of each client, as even as can be."""
    num = min(num_streams, num_clients)
    return [(list(asks[index::num]), len(range(index, num_streams, num))) for index in range(num)]


def joined(parts: Sequence[Ran]) -> Ran:
    """The load of all clients as one; the processes of a machine share the clock of their stamps."""
    return Ran(
        answers=tuple(answer for part in parts for answer in part.answers),
        started=min(part.started for part in parts),
        full_until=min(part.full_until for part in parts),
        ended=max(part.ended for part in parts),
    )


def _run(endpoint: Endpoint, asks: Sequence[Ask], num_streams: int) -> Ran:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_asks(endpoint, asks, num_streams=num_streams))
