"""Orders to drain, on their way from a gateway to the process of one worker, in ``live``. Decides nothing.

A drained worker takes no more jobs, hands the running ones over and ends, as by SIGTERM. Whoever started it may start
another one.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence

import structlog

from axon.errors import AxonError, Conflict
from axon.ports.live import Wakeups

_ANSWER_S = 5.0
"""Longest wait for the worker to say that it drains."""
_LISTEN_S = 60.0
_RETRY_S = 1.0

_logger = structlog.get_logger("axon.worker")


class DrainOrders:
    """Tells workers to drain, for the admin routes."""

    def __init__(self, wakeups: Wakeups, *, answer_s: float = _ANSWER_S) -> None:
        self._wakeups, self._answer_s = wakeups, answer_s

    async def takers(self, workers: Sequence[str]) -> frozenset[str]:
        """The workers that take orders; those of which nobody can tell are among them."""
        counts = await self._wakeups.counts([_channel(worker) for worker in workers]) if workers else ()
        return frozenset(worker for worker, num in zip(workers, counts, strict=True) if num != 0)

    async def give(self, worker: str) -> None:
        """Returns when the worker of this name has said that it drains; raises ``Conflict`` if it does not answer."""
        answers = f"drained/{uuid.uuid4().hex}"
        async with self._wakeups.listen(answers) as listener:
            (num,) = await self._wakeups.counts([_channel(worker)])
            if num != 0:
                await self._wakeups.notify(_channel(worker), answers.encode())
                if await listener.next(self._answer_s) is not None:
                    return
        raise Conflict(
            f"The worker '{worker}' takes no order to drain: it hangs, or it is a part of `axon serve`, whose process "
            "you stop as a whole.",
            code="worker_not_drained",
            param="worker_id",
        )


class DrainListener:
    """``run`` in a worker's process until cancelled: calls ``drain`` when it is told to."""

    def __init__(self, wakeups: Wakeups, worker: str, drain: Callable[[], None]) -> None:
        self._wakeups, self._worker, self._drain = wakeups, worker, drain

    async def run(self) -> None:
        """Listens. An order that is lost with a connection is given again by whoever gave it."""
        while True:
            try:
                async with self._wakeups.listen(_channel(self._worker)) as listener:
                    while True:
                        if answers := await listener.next(_LISTEN_S):
                            await self._wakeups.notify(answers.decode(), b"drains")
                            _logger.info("worker.told_to_drain", worker=self._worker)
                            self._drain()
            except AxonError:
                await asyncio.sleep(_RETRY_S)


def _channel(worker: str) -> str:
    return f"drain/{worker}"
