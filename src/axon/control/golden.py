"""Asks a new version its golden prompts before any session begins on it. Knows no rollout's steps."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from axon.domain.registry.golden import Golden
from axon.domain.registry.rollout import Rollout
from axon.errors import AxonError, InvalidInput

Ask = Callable[[str, str, Golden], Awaitable[str]]
"""Asks a deployment's version a golden prompt in an ordinary turn at temperature 0; returns the text of the answer."""

_EVERY_S = 0.5
_MOST_SHOWN = 200

_logger = structlog.get_logger("axon.control")


class GoldenChecks:
    """``result`` asks for a check and ``run`` makes it, so that the leader's round over all rollouts never waits.

    A check that could not be made, because a turn was not answered, is made again. A prompt that the version cannot be
    asked at all, such as one that is longer than its context, is a wrong one.
    """

    def __init__(self, ask: Ask, *, deadline_s: float = 60.0) -> None:
        self._ask, self._deadline_s = ask, deadline_s
        self._wanted: dict[str, tuple[str, Rollout]] = {}
        self._results: dict[str, str] = {}

    def result(self, deployment: str, rollout: Rollout) -> str | None:
        """Why the rollout's version does not pass; empty when it does, None while that is not known."""
        if not rollout.golden:
            return ""
        if rollout.id not in self._results:
            self._wanted[rollout.id] = (deployment, rollout)
        return self._results.get(rollout.id)

    def forget(self, rollout_id: str) -> None:
        """Forgets a rollout that has begun or is over."""
        self._wanted.pop(rollout_id, None)
        self._results.pop(rollout_id, None)

    async def run(self) -> None:
        """Makes the checks that are asked for, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Makes every check that is asked for now."""
        for rollout_id, (deployment, rollout) in list(self._wanted.items()):
            try:
                result = await self._check(deployment, rollout)
            except (AxonError, TimeoutError) as error:
                _logger.warning("golden.not_asked", deployment=deployment, version=rollout.new, error=str(error))
                continue
            except Exception:  # of one rollout: the others' checks go on
                _logger.exception("golden.failed", deployment=deployment, version=rollout.new)
                continue
            if self._wanted.pop(rollout_id, None) is not None:
                self._results[rollout_id] = result
                _logger.info("golden.checked", deployment=deployment, version=rollout.new, wrong=result or None)

    async def _check(self, deployment: str, rollout: Rollout) -> str:
        for number, golden in enumerate(rollout.golden, 1):
            try:
                async with asyncio.timeout(self._deadline_s):
                    answer = await self._ask(deployment, rollout.new, golden)
            except InvalidInput as error:
                return f"golden prompt {number} of {len(rollout.golden)} cannot be asked: {error.message}"
            if not golden.accepts(answer):
                verb = "is not" if golden.exactly else "does not contain"
                return (
                    f"golden prompt {number} of {len(rollout.golden)}: the answer {answer[:_MOST_SHOWN]!r} {verb} "
                    f"{golden.expected[:_MOST_SHOWN]!r}"
                )
        return ""
