"""Assembles the parts of sessions: lookup, histories, conversations, pins, erasure and retained turns."""

from collections.abc import Callable
from dataclasses import dataclass

from axon.ports.journal import Journal
from axon.ports.live import Live
from axon.ports.store import Store
from axon.runtime.clock import Clock
from axon.sessions.branches import Branches
from axon.sessions.config import SessionsConfig
from axon.sessions.conversations import Conversations
from axon.sessions.erasure import Erasure
from axon.sessions.history import Histories
from axon.sessions.lookup import Lookup
from axon.sessions.pins import SessionPins
from axon.sessions.retained import Retained


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """The parts of sessions, sharing one lookup."""

    lookup: Lookup
    histories: Histories
    conversations: Conversations
    erasure: Erasure
    pins: SessionPins
    retained: Retained


def make_sessions(
    live: Live,
    store: Store,
    journal: Journal,
    clock: Clock,
    config: SessionsConfig,
    on_moved: Callable[[str], None] = lambda reason: None,
    on_conflict: Callable[[str], None] = lambda kind: None,
    on_erased: Callable[[], None] = lambda: None,
    on_gone_on: Callable[[float], None] = lambda idle_s: None,
) -> Sessions:
    """``on_moved`` is told the reason of each session's move to another version, ``on_conflict`` of turns that find
    their session on another one, ``on_erased`` of each session that is erased, and ``on_gone_on`` the seconds that a
    session had rested when it goes on."""
    lookup = Lookup(live, store.turns, journal, clock)
    histories = Histories(lookup, live.cache, live.crowds, store.turns, store.conversations, clock, config, on_gone_on)
    erasure = Erasure(
        live,
        store.turns,
        store.pinned,
        store.tombstones,
        lookup,
        histories,
        clock,
        retention_s=config.retention_s,
        on_erased=on_erased,
    )
    pins = SessionPins(live.pins, store.pinned, lookup, clock, config, on_moved, on_conflict)
    branches = Branches(store.turns, lookup)
    conversations = Conversations(store.conversations, lookup, histories, erasure, branches, clock, config)
    return Sessions(
        lookup=lookup,
        histories=histories,
        conversations=conversations,
        erasure=erasure,
        pins=pins,
        retained=Retained(store.turns, lookup),
    )
