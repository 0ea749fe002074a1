"""A tenant's terms as bounds of its account, and what a refusal says. Pure.

A refusal is honest about time: it says when the same request would be let in, if nothing else came.
"""

import math

from axon.admission.ticket import budgets
from axon.domain.account import MINUTE_S, Bound, Bounds, Standing
from axon.domain.tenant import Terms
from axon.errors import AxonError, BudgetSpent, LimitReached

FIRST_OUTPUT = 256
"""Tokens that an answer is expected to have before any is known."""
BYTES_PER_TOKEN = 4
_GRAIN_S = 0.002
"""Clocks differ in their last millisecond."""
_SHORTEST_S, _USUAL_S, _LONGEST_S = 0.05, 1.0, 30.0


def bounds_of(terms: Terms, now: float) -> Bounds:
    """Of the tenant's account."""
    return Bounds(
        requests_per_minute=terms.requests_per_minute,
        tokens_per_minute=terms.tokens_per_minute,
        jobs=terms.concurrent,
        waiting=terms.queued,
        budgets=budgets(now, per_day=terms.tokens_per_day, per_month=terms.tokens_per_month),
    )


def expected_output(standing: Standing) -> int:
    """Tokens that one answer is expected to have: as the tenant's last ones had, the newest counting most."""
    return FIRST_OUTPUT if standing.mean_output is None else math.ceil(standing.mean_output)


def refusal(standing: Standing, bounds: Bounds, *, tokens: float, least: float = 1, place_s: float) -> AxonError:
    """Why the tenant's request, which would set so many tokens aside and use so many at least, is turned away; in
    ``place_s`` it would find a place if it lacks one."""
    match standing.refused:
        case Bound.BUDGET:
            return _spent(standing, bounds, least)
        case Bound.BUDGET_HELD:
            return LimitReached(
                "What is left of your budget of tokens is set aside for requests of yours that run or wait; what they "
                "do not use is free when they end.",
                code="budget_reserved",
                retry_after_s=place_s,
            )
        case Bound.REQUESTS:
            per_minute = bounds.requests_per_minute
            return LimitReached(
                f"Rate limit reached for requests: {per_minute:g} per minute.",
                retry_after_s=_refill_s(1, standing.requests, per_minute),
            )
        case Bound.TOKENS:
            per_minute = bounds.tokens_per_minute
            return LimitReached(
                f"Rate limit reached for tokens: {per_minute:g} per minute, of which {max(0, int(standing.tokens))} "
                f"are left and this request needs about {math.ceil(tokens)}.",
                retry_after_s=_refill_s(min(tokens, per_minute), standing.tokens, per_minute),
            )
        case Bound.WAITING:
            return LimitReached(
                f"{bounds.waiting} requests of yours wait for a worker, which is your limit.",
                code="queue_limit",
                retry_after_s=place_s,
            )
    return LimitReached(
        f"{bounds.jobs} requests of yours are queued or running, which is your limit.",
        code="concurrency_limit",
        retry_after_s=place_s,
    )


def place_s(standing: Standing) -> float:
    """When the next of an account's jobs is likely to end: they last so long, and end one after the other."""
    if standing.mean_s is None:
        return _USUAL_S
    return min(_LONGEST_S, max(_SHORTEST_S, standing.mean_s / max(1, standing.jobs)))


def _refill_s(needed: float, level: float, per_minute: float) -> float:
    """Rounded up, so that waiting so long is enough."""
    return math.ceil(max(0.0, needed - level) / per_minute * MINUTE_S * 1000) / 1000 + _GRAIN_S


def _spent(standing: Standing, bounds: Bounds, least: float) -> BudgetSpent:
    if budget := standing.over(bounds.budgets):
        return BudgetSpent(
            f"You have used your budget of {budget.limit} tokens for this {budget.name}; it begins anew with the next "
            f"{budget.name} (UTC)."
        )
    if budget := standing.lacking(bounds.budgets, least):
        return BudgetSpent(
            f"Of your budget of {budget.limit} tokens for this {budget.name} {math.floor(standing.left(budget))} are "
            f"left, and this request needs at least {math.ceil(least)}; it begins anew with the next {budget.name} "
            "(UTC)."
        )
    return BudgetSpent()
