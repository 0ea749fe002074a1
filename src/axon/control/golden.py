"""Asks a new version its golden prompts before any session begins on it. Knows no rollout's steps."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from axon.domain.registry.golden import Golden
from axon.domain.registry.rollout import Rollout
from axon.errors import AxonError, DependencyDown, InvalidInput

Ask = Callable[[str, str, Golden], Awaitable[str]]
"""Asks a deployment's version a golden prompt in an ordinary turn at temperature 0; returns the text of the answer."""

MOST_TRIES = 8
"""A check that failed so often is not made again."""
_EVERY_S = 0.5
_LONGEST_PAUSE_S = 30.0
_MOST_SHOWN = 200

_logger = structlog.get_logger("axon.control")


@dataclass(slots=True)
class _Wanted:
    """A check that is asked for."""

    deployment: str
    rollout: Rollout
    tries: int = 0
    """Tries in which a turn was not answered."""
    due: float = 0.0
    """Monotonic time of the next try."""
    problem: str = ""
    """Why the last try failed."""


class GoldenChecks:
    """``result`` asks for a check and ``run`` makes it, so that the leader's round over all rollouts never waits.

    A check in which a turn was not answered is made again after a pause that doubles, ``MOST_TRIES`` times (about a
    minute where turns fail at once); then the version does not pass. A lost queue or store is nobody's fault, and is
    not counted. A prompt that the version cannot be asked at all, such as one that is longer than its context, is a
    wrong one.
    """

    def __init__(self, ask: Ask, *, deadline_s: float = 60.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._deadline_s, self._monotonic = ask, deadline_s, monotonic
        self._wanted: dict[str, _Wanted] = {}
        self._results: dict[str, str] = {}

    def result(self, deployment: str, rollout: Rollout) -> str | None:
        """Why the rollout's version does not pass; empty when it does, None while that is not known."""
        if not rollout.golden:
            return ""
        if rollout.id not in self._results:
            self._wanted.setdefault(rollout.id, _Wanted(deployment, rollout))
        return self._results.get(rollout.id)

    def problem(self, rollout: Rollout) -> str:
        """Why the last try of a check that is still to be made failed; empty where none has."""
        wanted = self._wanted.get(rollout.id)
        return wanted.problem if wanted else ""

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
        """Makes every check that is due now."""
        for rollout_id, wanted in list(self._wanted.items()):
            if wanted.due > self._monotonic():
                continue
            try:
                result = await self._tried(wanted)
            except Exception:  # of one rollout: the others' checks go on
                _logger.exception("golden.failed", deployment=wanted.deployment, version=wanted.rollout.new)
                continue
            if result is not None and self._wanted.pop(rollout_id, None) is not None:
                self._results[rollout_id] = result
                deployment, version = wanted.deployment, wanted.rollout.new
                _logger.info("golden.checked", deployment=deployment, version=version, wrong=result or None)

    async def _tried(self, wanted: _Wanted) -> str | None:
        """The result of one try; None where it is to be made again."""
        number, rollout = 0, wanted.rollout
        try:
            for number, golden in enumerate(rollout.golden, 1):
                if wrong := await self._wrong(wanted, golden, f"golden prompt {number} of {len(rollout.golden)}"):
                    return wrong
        except InvalidInput as error:
            return f"golden prompt {number} of {len(rollout.golden)} cannot be asked: {error.message}"
        except (AxonError, TimeoutError) as error:
            why = str(error)[:_MOST_SHOWN] or f"no answer within {self._deadline_s:g} s"
            _logger.warning("golden.not_asked", deployment=wanted.deployment, version=rollout.new, error=why)
            wanted.tries += not isinstance(error, DependencyDown)
            wanted.problem = f"golden prompt {number} of {len(rollout.golden)} was not answered: {why}"
            wanted.due = self._monotonic() + min(_EVERY_S * 2**wanted.tries, _LONGEST_PAUSE_S)
            return f"{wanted.problem} ({wanted.tries} tries)" if wanted.tries >= MOST_TRIES else None
        return ""

    async def _wrong(self, wanted: _Wanted, golden: Golden, which: str) -> str:
        """Why the answer to a prompt does not pass; empty when it does."""
        async with asyncio.timeout(self._deadline_s):
            answer = await self._ask(wanted.deployment, wanted.rollout.new, golden)
        if golden.accepts(answer):
            return ""
        verb = "is not" if golden.exactly else "does not contain"
        return f"{which}: the answer {answer[:_MOST_SHOWN]!r} {verb} {golden.expected[:_MOST_SHOWN]!r}"
