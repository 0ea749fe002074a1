"""This engine's time slices of cores that it shares: it takes one for each step, and passes it on within long ones.

Slices are an agreement, not a safety: who waited too long computes beside the other, and does not wait for it again
until that one moves.
"""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from axon.engine.timeshare.board import Board, NoBoard
from axon.engine.timeshare.order import Claim, State, begins, in_the_way, next_slice, passes_on, raised

logger = logging.getLogger(__name__)

PATIENCE_S = 0.5
"""Seconds after which an engine computes without a time slice: the engine that has it hangs, or its steps are long."""
_LOOK_S = 0.01
"""Seconds after which a waiting engine looks for itself whether it is next, and for engines that have ended."""


class TimeSlices:
    """``slice`` around each step; ``offer`` where a step can be interrupted; ``rest`` when there is no more work."""

    def __init__(self, board: Board, weight: float = 1.0, clock: Callable[[], float] = time.perf_counter) -> None:
        """``weight``: the engine's share of the cores against the others'."""
        self._board, self._weight, self._clock = board, weight, clock
        self._state, self._had_s = State.IDLE, 0.0
        self._began = 0.0
        self._has_lock = self._is_stuck = False
        """Whether this engine has the lock; whether it waited too long for it, and could not take it since."""
        self._hung: frozenset[Claim] = frozenset()
        """Claims that it waited too long for; it ignores each until it changes."""
        self._has_warned = False
        self.away_s = 0.0
        """Seconds for which steps were interrupted."""

    @contextmanager
    def slice(self) -> Iterator[None]:
        """Holds a time slice for the length of the block."""
        self._had_s = begins(self._claim, self._board.level_s).had_s
        self._take()
        try:
            yield
        finally:
            self._give(State.BETWEEN)

    def offer(self) -> None:
        """Within a time slice: passes it on and waits for the next one, if another engine should go first."""
        if self._state is not State.HOLDING:
            return
        if passes_on(self._claim, self._clock() - self._began, self._weight, self._others()):
            left = self._clock()
            self._give(State.WAITING)  # before the lock is free: the other one must see that this one waits
            self._take()
            self.away_s += self._clock() - left

    def rest(self) -> None:
        """The engine has no more work."""
        if self._state is not State.IDLE:
            self._enter(State.IDLE)

    def close(self) -> None:
        """Leaves the board."""
        self._board.close()

    @property
    def _claim(self) -> Claim:
        return Claim(slot=self._board.slot, state=self._state, had_s=self._had_s)

    def _enter(self, state: State) -> None:
        self._state = state
        self._board.write(state, self._had_s)

    def _others(self) -> list[Claim]:
        """The claims of the other engines, without those that hang."""
        claims = self._board.read()
        self._hung = self._hung.intersection(claims) if self._hung else self._hung
        return [claim for claim in claims if claim.slot != self._board.slot and claim not in self._hung]

    def _take(self) -> None:
        self._enter(State.WAITING)
        if not self._try_take():
            self._wait()
        self._enter(State.HOLDING)
        self._board.level_s = raised(self._board.level_s, self._had_s)
        self._began = self._clock()

    def _wait(self) -> None:
        """Waits for the time slice, but no longer than ``PATIENCE_S``."""
        before, deadline = self._others(), self._clock() + PATIENCE_S
        while self._clock() < deadline:
            if not self._board.wait(_LOOK_S):
                self._board.clear_dead()
            if self._try_take():
                return
        self._hung |= in_the_way(self._claim, before, self._others())
        self._try_take()
        self._is_stuck = not self._has_lock
        self._warn()

    def _warn(self) -> None:
        if not self._has_warned:
            slots = sorted(claim.slot for claim in self._hung)
            logger.warning(
                "waited %s s for a time slice (slots that did not move: %s); said once",
                PATIENCE_S,
                slots,
                extra={"axon_event": "engine.slice_late"},
            )
            self._has_warned = True

    def _try_take(self) -> bool:
        """Takes the lock if this engine is next. Where the lock is stuck, the claims of the others must do."""
        others = self._others()
        first = next_slice([*others, self._claim])
        if first is not None and first.slot != self._board.slot:
            return False
        self._has_lock = self._board.try_hold()
        self._is_stuck = self._is_stuck and not self._has_lock
        return self._has_lock or (self._is_stuck and all(claim.state is not State.HOLDING for claim in others))

    def _give(self, then: State) -> None:
        self._had_s += (self._clock() - self._began) / self._weight
        self._enter(then)
        if self._has_lock:
            self._board.release()
            self._has_lock = False
        if waits := next_slice(self._others()):
            self._board.wake(waits.slot)


class WholeTime:
    """What an engine has that shares its cores with none: all of their time."""

    away_s = 0.0

    @contextmanager
    def slice(self) -> Iterator[None]:
        """Holds a time slice."""
        yield

    def offer(self) -> None:
        """Keeps it."""

    def rest(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


def join_cores(weight: float, folder: Path | None = None) -> TimeSlices | WholeTime:
    """Joins the engines on these cores; where that is not possible, the engine computes beside them."""
    if sys.platform != "linux":
        return WholeTime()
    board = Board(folder or shared_folder())
    try:
        board.open()
    except NoBoard as error:
        logger.warning(
            "the engine does not share its cores by time slices: %s", error, extra={"axon_event": "engine.slices_off"}
        )
        return WholeTime()
    return TimeSlices(board, weight)


def shared_folder() -> Path:
    """The folder of this user's engines on the cores that this process may use, with its niceness: an engine that the
    system runs seldom would hold up those that it runs first."""
    cores = sum(1 << core for core in os.sched_getaffinity(0))
    return Path(tempfile.gettempdir()) / f"axon-{os.geteuid()}-cores-{cores:x}-nice-{os.nice(0)}"
