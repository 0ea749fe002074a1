"""Counts what waits for workers, of every model: turns in its lanes, and the tokens that these are expected to cost.

Autoscalers outside the fleet scale by it. Only the leader reports it, so that a sum over all processes is right.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import structlog

from axon.domain.presence import Presence, Service
from axon.errors import AxonError
from axon.ports.live import Presences
from axon.ports.queue import Queue

_EVERY_S = 5.0
_LANES_AT_ONCE = 64
"""Lanes that one call counts: a broker answers for one lane at a time, and a call has a deadline."""
_FIRST_TOKENS = 400.0
"""Tokens that a turn is assumed to cost before the first one was taken."""

Lanes = Callable[[Mapping[str, Sequence[Presence]]], Mapping[str, Sequence[str]]]
"""The lanes of each model, given the presences of each."""
Show = Callable[[str, int, float], None]
"""Shows a model's waiting turns and their expected tokens."""

_logger = structlog.get_logger("axon.control")


class Backlog:
    """``run`` it in every control; ``look`` is one round over all models."""

    def __init__(
        self,
        queue: Queue,
        presences: Presences,
        models: Callable[[], Sequence[str]],
        lanes: Lanes,
        show: Show,
        *,
        hide: Callable[[], None] = lambda: None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """``hide`` is called when this process does not lead any more."""
        self._queue, self._presences = queue, presences
        self._models, self._lanes, self._show, self._hide, self._leads = models, lanes, show, hide, leads
        self._shown: set[str] = set()
        """Models that were shown last."""

    async def run(self) -> None:
        """Looks every few seconds while this process leads, until cancelled."""
        while True:
            if self._leads():
                try:
                    await self.look()
                except AxonError as error:
                    _logger.warning("backlog.unknown", error=str(error))
            else:
                self._hide()
                self._shown.clear()
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> None:
        """Counts the lanes of every model; for one that is gone since the last look nothing waits."""
        presences = {model: await self._presences.all(model) for model in self._models()}
        lanes_of = self._lanes(presences)
        for model in self._shown - lanes_of.keys():
            self._show(model, 0, 0.0)
        self._shown = set(lanes_of)
        for model, lanes in lanes_of.items():
            num = 0
            for first in range(0, len(lanes), _LANES_AT_ONCE):
                num += sum((await self._queue.depths(lanes[first : first + _LANES_AT_ONCE])).values())
            there = presences.get(model, ())  # a model that was deployed while the others were read has none yet
            tokens = num * tokens_of_turn([each.load.service for each in there])
            self._show(model, num, tokens)


def tokens_of_turn(services: Sequence[Service]) -> float:
    """The mean tokens of a turn, of its prompt without what caches hold and of its answer, as workers report them."""
    jobs = sum(each.taken_jobs for each in services)
    tokens = sum(each.taken_prompt + each.expected_tokens for each in services)
    return tokens / jobs if jobs > 0 else _FIRST_TOKENS
