"""Observes the turns of one gateway while a rollout runs: counts and latencies per version. Knows no HTTP."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from axon.domain.registry.rollout import Rollout, RolloutState
from axon.domain.registry.samples import Observed, Outcome, Samples, bucket_of_latency
from axon.domain.registry.snapshot import Snapshot
from axon.errors import AxonError
from axon.registry.observations import Observations

_EVERY_S = 1.0
_MOST_OPEN = 50_000
"""Largest number of turns that are observed at once; more are not, on either version."""
_FEWEST_TOKENS = 8
"""An answer with fewer tokens says nothing about the time between them."""
_OBSERVED = (RolloutState.RUNNING, RolloutState.PAUSED)

_logger = structlog.get_logger("axon.registry")


@dataclass(slots=True)
class _Counts:
    """Cumulative counts of one version."""

    begun: int = 0
    errors: int = 0
    refused: int = 0
    mute: int = 0
    ttft: Counter[int] = field(default_factory=Counter)
    itl: Counter[int] = field(default_factory=Counter)

    def samples(self) -> Samples:
        return Samples(
            begun=self.begun,
            errors=self.errors,
            refused=self.refused,
            mute=self.mute,
            ttft=dict(self.ttft),
            itl=dict(self.itl),
        )


@dataclass(slots=True)
class _Watched:
    """A rollout that runs."""

    rollout: Rollout
    old: _Counts = field(default_factory=_Counts)
    new: _Counts = field(default_factory=_Counts)


@dataclass(slots=True)
class _Open:
    """A turn that has not ended."""

    rollout_id: str
    counts: _Counts
    is_first: bool
    began: float
    mute_s: float
    is_followed: bool = False
    """Whether anybody reads it here: of a turn in the background, which nobody reads, no token is seen."""
    answered: float | None = None
    spoke: float | None = None
    """When its last token so far came."""


class Observing:
    """Call ``begun``, ``followed``, ``answered`` and ``ended`` for every turn; they cost nothing while no rollout runs.

    ``snapshot`` returns the gateway's view of the registry, ``gateway`` is the id of this run of the process.
    """

    def __init__(
        self,
        observations: Observations,
        *,
        gateway: str,
        snapshot: Callable[[], Snapshot],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observations, self._gateway, self._snapshot, self._monotonic = observations, gateway, snapshot, monotonic
        self._watched: dict[str, _Watched] = {}
        """By the id of the rollout."""
        self._open: dict[str, _Open] = {}
        """By the id of the turn."""
        self._unanswered: dict[str, _Open] = {}
        """Turns without a first token that are not counted as mute yet, the oldest first."""

    def begun(self, turn: str, deployment: str, version: str, *, is_first: bool) -> None:
        """A turn was accepted. ``is_first``: it is its session's first, so its latencies can be compared."""
        counts_of = self._counts(deployment, version)
        if counts_of is None or len(self._open) >= _MOST_OPEN or turn in self._open:
            return
        watched, counts = counts_of
        counts.begun += 1
        self._open[turn] = _Open(
            rollout_id=watched.rollout.id,
            counts=counts,
            is_first=is_first,
            began=self._monotonic(),
            mute_s=watched.rollout.tolerance.mute_s,
        )

    def followed(self, turn: str) -> None:
        """Somebody reads the turn at this gateway."""
        found = self._open.get(turn)
        if found is not None and not found.is_followed:
            found.is_followed = True
            self._unanswered[turn] = found

    def answered(self, turn: str) -> None:
        """The turn's first token has come, or another one."""
        found = self._open.get(turn)
        if found is None:
            return
        found.spoke = self._monotonic()
        if found.answered is not None:
            return
        self._unanswered.pop(turn, None)
        found.answered = found.spoke
        if found.is_first:
            found.counts.ttft[bucket_of_latency(found.answered - found.began)] += 1

    def ended(self, turn: str, outcome: Outcome, *, num_tokens: int = 0, decode_s: float | None = None) -> None:
        """The turn has ended, or nobody reads it any more (``Outcome.LEFT``).

        ``decode_s`` are the seconds from its first token to its end as its worker has counted them: the time here is
        also that of its reader, who may be slow on purpose.
        """
        found = self._open.pop(turn, None)
        is_unanswered = self._unanswered.pop(turn, None) is not None
        if found is None:
            return
        if outcome is Outcome.ERROR or (outcome is Outcome.EXPIRED and self._is_silent(found)):
            found.counts.errors += 1
        elif outcome is Outcome.LEFT and is_unanswered:
            found.counts.mute += 1
        elif found.is_first and found.answered is not None and num_tokens >= _FEWEST_TOKENS:
            took_s = self._monotonic() - found.answered if decode_s is None else decode_s
            found.counts.itl[bucket_of_latency(took_s / (num_tokens - 1))] += 1

    def _is_silent(self, found: _Open) -> bool:
        """Whether the turn has said nothing, or nothing more for as long as a first token may take."""
        return found.spoke is None or self._monotonic() - found.spoke >= found.mute_s

    def refused(self, deployment: str, version: str) -> None:
        """A session's first turn was refused after it was decided that this version answers it."""
        if counts_of := self._counts(deployment, version):
            counts_of[1].refused += 1

    async def run(self) -> None:
        """Puts the samples into ``live`` every second, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                await self.flush()
            except AxonError as error:
                _logger.warning("rollout.samples_not_put", error=str(error))

    async def flush(self) -> None:
        """Puts the cumulative samples of every rollout that runs into ``live``, and forgets those that do not."""
        self._count_mute()
        running = {
            deployment.rollout.id
            for deployment in self._snapshot().deployments.values()
            if deployment.rollout and deployment.rollout.state in _OBSERVED
        }
        for gone in self._watched.keys() - running:
            del self._watched[gone]
            for turn in [turn for turn, found in self._open.items() if found.rollout_id == gone]:
                self._open.pop(turn)
                self._unanswered.pop(turn, None)
        for rollout_id, watched in list(self._watched.items()):
            observed = Observed(old=watched.old.samples(), new=watched.new.samples())
            await self._observations.put(rollout_id, self._gateway, observed)

    def _count_mute(self) -> None:
        now = self._monotonic()
        for turn in [turn for turn, found in self._unanswered.items() if now - found.began >= found.mute_s]:
            self._unanswered.pop(turn).counts.mute += 1
        for turn, found in list(self._open.items()):
            if not found.is_followed and now - found.began >= found.mute_s:
                del self._open[turn]  # nobody here would see its end

    def _counts(self, deployment: str, version: str) -> tuple[_Watched, _Counts] | None:
        """The counts of a version in its deployment's running rollout; None where there is none."""
        record = self._snapshot().deployments.get(deployment)
        rollout = record.rollout if record else None
        if rollout is None or rollout.state not in _OBSERVED or version not in (rollout.old, rollout.new):
            return None
        watched = self._watched.get(rollout.id)
        if watched is None:
            watched = self._watched[rollout.id] = _Watched(rollout)
        return watched, watched.new if version == rollout.new else watched.old
