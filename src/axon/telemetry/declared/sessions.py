"""Metrics of sessions: which are busy, how long they rest, and how they end."""

from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import Declarations


class SessionMetrics:
    """The life cycle of sessions, and their pins to versions."""

    def __init__(self, make: Declarations) -> None:
        make.about("Sessions")
        self.sessions = make.gauge(
            "axon_sessions",
            "Sessions in the store by state: active (a turn waits or runs) or idle (kept for its next turn).",
            "state",
            unit="sessions",
            together="max",
        )
        self.idle = make.histogram(
            "axon_session_idle_seconds",
            "From the end of a session's last turn to its next one, or to its eviction.",
            buckets.IDLE,
            "ended",
        )
        self.evictions = make.counter(
            "axon_session_evictions_total",
            "Sessions that lost state: idle past the retention, erased, or a turn found none of its KV blocks (kv).",
            "reason",
            unit="sessions",
            starts=[("idle",), ("erased",), ("kv",)],
        )
        self.moved = make.counter(
            "axon_sessions_moved_total",
            "Sessions moved to another version than they were on.",
            "reason",
            unit="sessions",
        )
        self.pin_conflicts = make.counter(
            "axon_pin_conflicts_total",
            "Turns whose session was pinned to another version: one that was asked for (asked), or by a rival (race).",
            "kind",
            unit="turns",
            starts=[("asked",), ("race",)],
        )
