"""Whom a busy fleet turns away: who would wait for its first token longer than its tier's promise. Pure.

A fleet that takes more than it serves makes everybody wait, and in the end serves those who have left. So a request is
let in only while the tokens ahead of it are served in time. Ahead of it is what waits already, but no more than fair
sharing lets through before it: a tenant of whose own nothing waits is next in line, however much the others have piled
up. Before anybody knows how much the fleet serves, nobody is turned away by a forecast.
"""

from dataclasses import dataclass

from axon.domain.account import Bound, Bounds, Standing
from axon.errors import Overloaded

_LEAST_S, _LONGEST_S = 0.1, 60.0
_KEPT = 1 / 8
"""Of all places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is known before a request is let in."""

    tokens_per_s: float | None
    """What the fleet serves when it is busy; None before it has been."""
    own_waiting: int
    """The tenant's turns that wait already."""
    share: float
    """Its part of the fleet while all wait who wait now; more than 0, at most 1."""
    mean_work: float
    """Tokens of a turn that waits, as far as is known."""

    def own_s(self) -> float:
        """How long the fleet takes for what of the tenant's own is ahead, with the others' part in between."""
        if not self.tokens_per_s:
            return 0.0
        return self.own_waiting * self.mean_work / self.share / self.tokens_per_s


def bounds(forecast: Forecast, *, patience_s: float, backlog_s: float, jobs: int) -> Bounds:
    """What the fleet may hold for the request to come in; 0 seconds are any time. Of its places the last ones are for
    those of whose own nothing waits."""
    rate = forecast.tokens_per_s or 0.0
    is_own_late = forecast.own_s() >= patience_s
    kept = int(jobs * _KEPT) if forecast.own_waiting > 0 else 0
    return Bounds(jobs=jobs - kept, work=backlog_s * rate, waiting_work=patience_s * rate if is_own_late else 0.0)


def refusal(standing: Standing, held: Bounds, forecast: Forecast, *, place_s: float) -> Overloaded:
    """Why it is turned away, and when the same request would come in if nothing else came."""
    rate = forecast.tokens_per_s or 1.0
    match standing.refused:
        case Bound.WORK:
            return Overloaded(
                f"The server has work for {standing.work / rate:.0f} s; try again later.",
                code="backlog_tokens",
                retry_after_s=_within((standing.work - held.work) / rate),
            )
        case Bound.WAITING_WORK:
            return Overloaded(
                f"The first token would come in about {standing.waiting_work / rate:.0f} s, which is later than is "
                "promised; try again later.",
                code="slo_unreachable",
                retry_after_s=_within((standing.waiting_work - held.waiting_work) / rate),
            )
    return Overloaded(retry_after_s=place_s)


def _within(seconds: float) -> float:
    return min(_LONGEST_S, max(_LEAST_S, seconds))
