"""What happened in a simulated world, and whether it was allowed to."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from axon.domain.log.chunk import Chunk
from axon.domain.session.pin import Pin
from axon.domain.turn import Turn, TurnState

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.processes import Process

STEADY_S = 0.5
"""A lease that has held for so long was not missed by a hair."""


class Violation(AssertionError):
    """A promise was broken."""


@dataclass(slots=True)
class LogCopy:
    """What the log holds of a job, as its appends tell."""

    tokens: list[int] = field(default_factory=list)
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a gateway decided about a turn's version before it rendered the turn."""

    key: str
    pin: Pin
    is_told: bool
    """Whether the turn tells that its session was moved."""
    began: float
    at: float


class History:
    """Every event in order, checked as it comes."""

    def __init__(self, time: Any) -> None:
        self._time = time
        self.events: list[str] = []
        self.lease_holds: Callable[[str], bool] = lambda owner: False
        self.acting: Process | None = None
        """Who is calling a service right now."""
        self.owners: dict[str, Process] = {}
        self.held_since: dict[str, float] = {}
        self.opened: dict[str, Turn] = {}
        self.ends: dict[str, list[Turn]] = defaultdict(list)
        self.logs: dict[str, LogCopy] = defaultdict(LogCopy)
        self.owner_of: dict[str, str] = {}
        self.told: set[str] = set()
        """Jobs whose end the log was told, whatever it has forgotten since."""
        self.damaged: set[str] = set()
        """Jobs whose stream lost something."""
        self.said_at_stop: dict[str, int] = {}
        """Of jobs whose end was asked for, how many tokens the log had then."""
        self.refused: set[str] = set()
        """Of these, those whose client was told that they were not accepted."""
        self.lost_at = -1.0
        self.num_lost = 0
        self.flushes: list[float] = []
        self.resolutions: dict[tuple[str, float], Resolution] = {}
        """By the job's id and the time at which it was made."""
        self.opened_at: dict[str, tuple[float, int]] = {}
        """By the turn's id: when the journal first had it, and how often the log had been lost then."""
        self.violation = ""

    def note(self, what: str) -> None:
        self.events.append(f"{self._time():8.3f}  {what}")

    def broken(self, what: str) -> Violation:
        self.note(f"VIOLATION {what}")
        self.violation = self.violation or what
        return Violation(what)

    def claimed(self, job_id: str, owner: str, old_owner: str) -> None:
        self.note(f"{job_id} claimed by {owner} over {old_owner or 'nobody'}")
        self.owner_of[job_id] = owner
        since = self.held_since.get(old_owner) if self.lease_holds(old_owner) else None
        process = self.owners.get(old_owner)
        if old_owner in ("", owner) or since is None or process is None or not process.alive or process.paused:
            return
        if self._time() - since > STEADY_S:
            raise self.broken(f"{job_id} was stolen from {old_owner}, whose lease holds")

    def appended(self, job_id: str, chunk: Chunk) -> None:
        copy = self.logs[job_id]
        self.note(f"{job_id} {chunk.first}..{chunk.last} epoch {chunk.epoch} {chunk.terminal}")
        owner = self.owners.get(self.owner_of.get(job_id, ""))
        if owner is not None and self.acting is not None and owner is not self.acting:
            raise self.broken(f"{job_id} was written by {self.acting.name}, but {owner.name} owns it")
        if copy.ended:
            raise self.broken(f"{job_id} was written after its end")
        if chunk.first != len(copy.tokens) + 1:
            raise self.broken(f"{job_id} has a gap: {chunk.first} after {len(copy.tokens)}")
        if chunk.tokens and job_id in self.said_at_stop:
            raise self.broken(f"{job_id} was given tokens after its stop")
        copy.tokens += [token.id for token in chunk.tokens]
        copy.ended = bool(chunk.terminal)
        if copy.ended:
            self.told.add(job_id)

    def stopped(self, job_id: str, *, refused: bool) -> None:
        self.note(f"{job_id} is to stop at {len(self.logs[job_id].tokens)}")
        self.said_at_stop.setdefault(job_id, len(self.logs[job_id].tokens))
        if refused:
            self.refused.add(job_id)

    def costs_nothing(self, turn: Turn) -> bool:
        """Whether the turn was cancelled because its client was told that it was not accepted."""
        return turn.state is TurnState.CANCELLED and turn.id in self.refused

    def log_lost(self) -> None:
        self.note("the log lost everything")
        self.damaged.update(self.logs)
        self.said_at_stop.clear()
        self.refused.clear()
        self.logs.clear()
        self.owner_of.clear()
        self.held_since.clear()
        self.lost_at = self._time()
        self.num_lost += 1
        self.flushes.append(self._time())

    def tail_lost(self, job_id: str, keep: int) -> None:
        self.note(f"{job_id} lost its tail past {keep}")
        copy = self.logs[job_id]
        self.damaged.add(job_id)
        copy.tokens, copy.ended = copy.tokens[:keep], False
        self.lost_at = self._time()
        self.num_lost += 1

    def journalled(self, turn: Turn) -> None:
        self.note(f"{turn.id} journalled as {turn.state}")
        self.opened_at.setdefault(turn.id, (self._time(), self.num_lost))
        if turn.state.terminal:
            self.ends[turn.id].append(turn)
            said = 0 if self.costs_nothing(turn) else self.said_at_stop.get(turn.id)
            if said is not None and turn.id not in self.damaged and turn.usage.output_tokens != said:
                raise self.broken(f"{turn.id} is billed {turn.usage.output_tokens}, not {said}, as it was stopped")
        else:
            self._check_body(turn)
            self.opened[turn.id] = turn

    def _check_body(self, turn: Turn) -> None:
        """An accepted turn has one body: a repeated request changes none of it."""
        at, num_lost = self.opened_at[turn.id]
        before = self.opened.get(turn.id)
        if before is not None and before.job != turn.job and num_lost == self.num_lost:
            raise self.broken(f"{turn.id} was accepted with two bodies, first at {at:.3f}")

    def acked(self, job_id: str, has_copy: bool) -> None:
        self.note(f"{job_id} acked")
        if job_id not in self.ends and not has_copy:
            raise self.broken(f"{job_id} was acked before the journal had its end")

    def stored(self, turn: Turn, before: Turn | None) -> None:
        self.note(f"{turn.id} stored as {turn.state}")
        if before is not None and before.state.terminal:
            raise self.broken(f"{turn.id} was stored as {before.state} and then as {turn.state}")
