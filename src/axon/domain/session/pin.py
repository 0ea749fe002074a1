"""Pins: the version that holds a session, and when a session is moved to another one. Knows no service and no clock.

A pin is no record of its own: it is the version of the session's accepted turns. ``live`` keeps it at hand and orders
first turns that come at once; when it has lost the pin, the turns in the store say it.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from axon.domain.model.adapter import adapted, split_adapted
from axon.domain.moved import Moved
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.version import Version
from axon.domain.turn import Turn


class Reason(StrEnum):
    """Why a session goes on with another version than before."""

    EXPIRED = "expired"
    """It was idle for longer than a pin lives."""
    FAILED = "version_failed"
    """The version was aborted because it errs."""
    REMOVED = "version_removed"
    """The version takes no more turns."""
    NO_WORKER = "no_worker"
    """No worker has had the version for longer than the deployment's patience."""
    FALLBACK = "fallback"
    """Its deployment is unavailable or full, and a fallback answers."""
    ALIAS = "alias_switched"
    """The name that the session asks for stands for another deployment now."""
    UNKNOWN = "unknown_version"
    """A mark of an earlier release that no registered version has."""
    CONFLICT = "pin_conflict"
    """Two first turns were accepted on two versions; the earlier one counts."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The version that a session's turns are answered by."""

    generation: int
    """Number of times that the session was moved."""
    version: str
    moved_from: str = field(default="", compare=False)
    """The version before a move that no accepted turn has told yet; empty otherwise."""
    reason: str = field(default="", compare=False)
    """The reason of that move."""

    @property
    def moved(self) -> Moved | None:
        """The move that the next turn has to tell."""
        is_untold = self.moved_from not in ("", self.version)
        return Moved(self.moved_from, self.version, self.reason) if is_untold else None

    @property
    def told(self) -> "Pin":
        """The pin once an accepted turn has told its move."""
        return Pin(self.generation, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPin:
    """What the store knows of a session's pin."""

    pin: Pin
    newest: str
    """Version of the newest turn; another one than the pin's after two first turns were accepted on two versions."""
    used_at: float
    """Unix time at which the newest turn was opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a gateway knows of the versions that a session may be pinned to."""

    states: Mapping[str, MemberState]
    """By the id of each version that the deployment has."""
    absent_s: Mapping[str, float] = field(default_factory=dict)
    """Seconds for which a version has had no worker; a version that has one is left out."""
    patience_s: float = 60.0
    marks: Mapping[str, str] = field(default_factory=dict)
    """Marks of earlier releases, and the versions that they mean."""
    removed: frozenset[str] = frozenset()
    """Versions that are registered and not of the deployment any more."""
    elsewhere: frozenset[str] = frozenset()
    """Versions of other deployments: a session on one of them asks for a name that was switched."""
    left: frozenset[str] = frozenset()
    """Versions that only the asked deployment has, when one of its fallbacks is to answer."""
    is_fresh: bool = True
    """Whether the view of the registry is fresh. One that is not may miss a version that others have pinned."""

    @property
    def gone(self) -> frozenset[str]:
        """Versions that no worker has had for longer than the deployment's patience: no session begins or stays on
        them."""
        return frozenset(version for version, absent_s in self.absent_s.items() if absent_s > self.patience_s)


class Unheard(Exception):
    """A session is pinned to a version that a view which is not fresh does not know."""


def known_of(
    deployment: Deployment,
    versions: Mapping[str, Version],
    absent_s: Mapping[str, float] | None = None,
    *,
    is_fresh: bool = True,
) -> Known:
    """What the registry says of a deployment's versions; ``absent_s`` as in ``Known``."""
    states = {member.version: member.state for member in deployment.members}
    own = [versions[each] for each in states if each in versions]
    return Known(
        states=states,
        absent_s=absent_s or {},
        patience_s=deployment.patience_s,
        marks={mark: version.id for version in own for mark in version.fingerprints},
        removed=frozenset(versions.keys() - states.keys()),
        is_fresh=is_fresh,
    )


def with_adapter(known: Known, marks: Iterable[str]) -> Known:
    """What is known of the versions together with the files of one adapter, by their marks: a session is pinned to
    both, and stays while both are there."""
    listed = tuple(marks)

    def each(versions: Iterable[str]) -> dict[str, str]:
        return {adapted(version, mark): version for version in versions for mark in listed}

    return replace(
        known,
        states={pinned: known.states[version] for pinned, version in each(known.states).items()},
        absent_s={pinned: known.absent_s[version] for pinned, version in each(known.absent_s).items()},
        marks={
            pinned: adapted(known.marks[old], split_adapted(pinned)[1]) for pinned, old in each(known.marks).items()
        },
        left=frozenset(each(known.left)),
    )


def pin_key(model: str, tenant: str, *, session: str = "", session_header: str = "", prompt_cache_key: str = "") -> str:
    """The key of a session's pin: the first of the names that is given, as a digest; empty where none is.

    ``session`` is a conversation's id or a chain's session. ``model`` is the name of the deployment that was asked for,
    itself or by an alias: a conversation that goes on with another model has another pin there. Names are client text,
    so only digests are kept.
    """
    names = {"session": session, "header": session_header, "cache": prompt_cache_key}
    kind, name = next(((kind, name) for kind, name in names.items() if name), ("", ""))
    if not name:
        return ""
    text = "".join(f"{len(part)}:{part}" for part in (kind, model, tenant, name))
    return "pin_" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:40]


def pin_of(turns: Iterable[Turn]) -> Pin | None:
    """The pin that a session's turns say: the highest generation, and in it the first turn."""
    first = min(turns, key=lambda turn: (-turn.job.generation, turn.job.ordinal, turn.opened_at, turn.id), default=None)
    return None if first is None else Pin(first.job.generation, first.job.pinned)


def last_pin(turns: Iterable[Turn]) -> LastPin | None:
    """What a session's turns say of its pin."""
    turns = list(turns)
    if (pin := pin_of(turns)) is None:
        return None
    newest = max(turns, key=lambda turn: (turn.job.generation, turn.opened_at, turn.id))
    return LastPin(pin=pin, newest=newest.job.pinned, used_at=newest.opened_at)


def renamed(pin: Pin, known: Known) -> Pin:
    """The pin with the id of the version that its mark means."""
    if pin.version in known.states or pin.version not in known.marks:
        return pin
    return Pin(pin.generation, known.marks[pin.version], pin.moved_from, pin.reason)


def reason_to_move(pin: Pin, known: Known) -> Reason | None:
    """Why a session cannot stay where it is pinned; None when it stays. Raises ``Unheard``."""
    state = known.states.get(pin.version)
    if state is None and not known.is_fresh:
        raise Unheard
    if state is None:
        version, _ = split_adapted(pin.version)  # whatever its adapter's files were
        if version in known.elsewhere:
            return Reason.ALIAS
        return Reason.REMOVED if version in known.removed else Reason.UNKNOWN
    if state is MemberState.FAILED:
        return Reason.FAILED
    if state is MemberState.CLOSED:
        return Reason.REMOVED
    if pin.version in known.gone:
        return Reason.NO_WORKER
    return Reason.FALLBACK if pin.version in known.left else None


def next_pin(pin: Pin, known: Known, choose: Callable[[], str]) -> Pin:
    """The pin that a session's next turn needs: the same one, unless its version has another name or is gone.

    ``choose`` returns the version on which a moved session goes on. Where that is the same version, the session stays.
    """
    pin = renamed(pin, known)
    if (reason := reason_to_move(pin, known)) is None:
        return pin
    version = _nearest(pin, known, choose())
    return pin if version == pin.version else moved_to(pin, version, reason)


def _nearest(pin: Pin, known: Known, chosen: str) -> str:
    """The version to move to: the chosen one, but a session with an adapter keeps its version if only its files are
    gone, and its files if only its version is."""
    (version, mark), (other, latest) = split_adapted(pin.version), split_adapted(chosen)
    if not latest:
        return chosen
    for each in (adapted(version, latest), adapted(other, mark)):
        if each in known.states and reason_to_move(Pin(pin.generation, each), known) is None:
            return each
    return chosen


def moved_to(pin: Pin, version: str, reason: Reason) -> Pin:
    """The pin after a move. A move that no turn has told yet is told together with this one."""
    return Pin(pin.generation + 1, version, pin.moved_from or pin.version, reason)


def stored_pin(last: LastPin, known: Known, *, now: float, life_s: float) -> tuple[Pin, bool]:
    """The pin that the store's turns say, and whether it has expired since."""
    pin = renamed(last.pin, known)
    newest = renamed(Pin(pin.generation, last.newest), known).version
    if newest != pin.version:
        pin = Pin(pin.generation, pin.version, newest, Reason.CONFLICT)
    return pin, now - last.used_at > life_s
