"""Load shedding: refuses a request whose first token would come later than its tier's objective. Pure functions.

A fleet that accepts more than it serves makes everybody wait, until it serves clients that have left. So a request is
admitted only while the tokens ahead of it will be served in time. Fair sharing limits what counts as ahead: a tenant
with no turn waiting is next, however much other tenants have queued. Until the throughput has been measured, the
forecast refuses nobody.
"""

from dataclasses import dataclass

from axon.domain.tenants.account import Bound, Bounds, Standing
from axon.errors import Overloaded

LATE = "slo_unreachable"
"""Code of the error for a request whose first token would come too late."""
_LEAST_S, _LONGEST_S = 0.1, 60.0
_KEPT = 1 / 8
"""Fraction of the admitted turns that is kept for tenants with no turn waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Facts about the fleet and the tenant before a request is admitted."""

    tokens_per_s: float | None
    """Throughput of the busy fleet; None before it was measured."""
    own_waiting: int
    """Number of the tenant's turns that wait already."""
    share: float
    """The tenant's fair share of the fleet among the tenants active now; more than 0, at most 1."""
    mean_work: float
    """Mean tokens of a waiting turn; 0 while unknown."""

    def own_s(self) -> float:
        """Seconds until the tenant's own waiting turns are served at its fair share."""
        if not self.tokens_per_s:
            return 0.0
        return self.own_waiting * self.mean_work / self.share / self.tokens_per_s


def bounds(forecast: Forecast, *, patience_s: float, backlog_s: float, jobs: int, extra_s: float = 0.0) -> Bounds:
    """Bounds of the fleet's account under which the request is admitted; 0 seconds mean no limit. The last eighth of
    the turns is kept for tenants with no turn waiting. ``extra_s`` are seconds that the request may wait beyond its
    patience because more workers are to start; the bounds on turns and on work stay as they are."""
    rate = forecast.tokens_per_s or 0.0
    patience_s += extra_s if patience_s else 0.0
    is_own_late = forecast.own_s() >= patience_s
    kept = int(jobs * _KEPT) if forecast.own_waiting > 0 else 0
    return Bounds(jobs=jobs - kept, work=backlog_s * rate, waiting_work=patience_s * rate if is_own_late else 0.0)


def refusal(standing: Standing, held: Bounds, forecast: Forecast, *, vacancy_s: float) -> Overloaded:
    """The error for a shed request, with the time at which it would be admitted if no other request came."""
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
                code=LATE,
                retry_after_s=_within((standing.waiting_work - held.waiting_work) / rate),
            )
    return Overloaded(retry_after_s=vacancy_s)


def _within(seconds: float) -> float:
    return min(_LONGEST_S, max(_LEAST_S, seconds))
