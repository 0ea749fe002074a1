"""Decides which version a session's next turn is answered by, before its prompt is rendered. Knows no HTTP, no worker.

The pin in ``live`` binds every gateway, and none keeps pins in its own memory. When ``live`` has none, the session's
turns in the store say it, read behind a barrier; without a store there is no fresh choice, but a refusal.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from axon.domain.moved import Moved
from axon.domain.session.pin import Known, LastPin, Pin, Reason, Unheard, moved_to, next_pin, stored_pin
from axon.errors import AxonError, Conflict, DependencyDown
from axon.ports.live import Pins
from axon.ports.store import PinnedSessions
from axon.runtime.clock import Clock
from axon.sessions.config import SessionsConfig
from axon.sessions.lookup import Lookup

UNACCEPTED_S = 60.0
"""Seconds that a pin stays without an accepted turn."""
_MAX_TRIES = 8
_RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Resolved:
    """The pin that a turn is accepted under, and the move that its answer has to tell."""

    pin: Pin
    moved: Moved | None = None
    is_new: bool = field(default=False, compare=False)
    """Whether the session begins with this turn."""


class SessionPins:
    """``resolve`` before a prompt is rendered; ``confirm`` once its turn is accepted."""

    def __init__(
        self,
        pins: Pins,
        pinned: PinnedSessions,
        lookup: Lookup,
        clock: Clock,
        config: SessionsConfig,
        on_moved: Callable[[str], None] = lambda reason: None,
        on_conflict: Callable[[str], None] = lambda kind: None,
    ) -> None:
        """``on_moved`` is told the reason of each move that is made here; ``on_conflict`` of each turn that finds its
        session on another version: ``asked`` if the request asked for one, ``race`` if another turn was first."""
        self._pins, self._pinned, self._lookup = pins, pinned, lookup
        self._clock, self._life_s = clock, config.pin_ttl_s
        self._on_moved, self._on_conflict = on_moved, on_conflict

    async def resolve(
        self,
        key: str,
        *,
        first: bool,
        choose: Callable[[], str],
        known: Known,
        session: str = "",
        asked: str = "",
        earlier: Sequence[str] = (),
    ) -> Resolved:
        """The pin of a session's next turn.

        ``key`` is empty for a turn that is its own session. ``first`` says that the session is named by this very job,
        so that no turn of it can be in the store. ``choose`` returns the version on which a new or moved session goes
        on, which is ``asked`` where the request asks for a version. ``session`` is the name under which an earlier
        release wrote the session's turns; ``earlier`` are keys that the session may have had before this one. Raises
        ``Conflict`` when the session is pinned to another version than the one asked for, and ``DependencyDown`` when
        nobody can say where it is pinned.
        """
        if not key:
            return Resolved(Pin(0, choose()), is_new=True)
        pin, is_new = None if first else await self._pins.get(key), False
        for _ in range(_MAX_TRIES):
            if pin is None:
                pin, is_new = await self._begun(key, choose, known, session, () if first else earlier, first=first)
            try:
                wanted = next_pin(pin, known, choose)
            except Unheard as error:
                raise _unavailable() from error
            if wanted == pin:
                if asked not in ("", pin.version):
                    self._on_conflict("asked")
                _require(pin, asked)
                return Resolved(pin, pin.moved, is_new)
            held, pin = pin, await self._pins.move(key, pin, wanted, ttl_s=UNACCEPTED_S)
            if pin == wanted and wanted.generation > held.generation:
                self._on_moved(wanted.reason)
            elif pin != wanted:
                self._on_conflict("race")
        raise _unavailable()

    async def confirm(self, key: str, pin: Pin) -> None:
        """The turn was accepted: the pin lives on, and its move is told. When that is lost, the store knows the pin."""
        if key:
            with contextlib.suppress(AxonError):
                await self._pins.confirm(key, pin, ttl_s=self._life_s)

    async def count(self, version: str) -> int:
        """Number of sessions that are pinned to a version, of every turn that was accepted until now."""
        await self._lookup.behind_barrier()
        return await self._pinned.count(version, since=self._clock.now() - self._life_s - UNACCEPTED_S)

    async def _begun(
        self,
        key: str,
        choose: Callable[[], str],
        known: Known,
        session: str,
        earlier: Sequence[str],
        *,
        first: bool,
    ) -> tuple[Pin, bool]:
        """Pins a session that ``live`` does not know; whoever comes first binds the others. Returns the pin, and
        whether no turn of the session is known."""
        last = None if first else await self._stored(key, session)
        for other in earlier:
            last = last or await self._last(other)
        if last is None:
            return await self._pins.pin(key, Pin(0, choose()), ttl_s=UNACCEPTED_S), True
        wanted, is_expired = stored_pin(last, known, now=self._clock.now(), life_s=self._life_s)
        wanted = moved_to(wanted, choose(), Reason.EXPIRED) if is_expired else wanted
        pin = await self._pins.pin(key, wanted, ttl_s=UNACCEPTED_S)
        if pin == wanted and wanted.moved is not None:
            self._on_moved(wanted.reason)
        return pin, False

    async def _stored(self, key: str, session: str) -> LastPin | None:
        await self._lookup.behind_barrier()
        return await self._last(key, session)

    async def _last(self, key: str, session: str = "") -> LastPin | None:
        """What the store says; read it behind a barrier."""
        try:
            return await self._pinned.last_pin(key, session=session)
        except DependencyDown as error:
            raise _unavailable() from error


def _require(pin: Pin, asked: str) -> None:
    if asked not in ("", pin.version):
        message = f"This session is pinned to {pin.version}; begin another one to ask {asked}."
        raise Conflict(message, code="version_pinned", param="model")


def _unavailable() -> DependencyDown:
    message = "The version that this session is on cannot be read just now; try again soon."
    return DependencyDown(message, code="history_unavailable", retry_after_s=_RETRY_S)
