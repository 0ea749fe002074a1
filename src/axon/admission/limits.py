"""Converts a tenant's terms to bounds of its account, and a refusal to an error. Pure functions.

A refusal's retry time is when the same request would be admitted if no other request came.
"""

import math

from axon.admission.ticket import budgets
from axon.domain.tenants.account import MINUTE_S, Bound, Bounds, Standing
from axon.domain.tenants.tenant import Terms
from axon.errors import AxonError, BudgetSpent, LimitReached

FIRST_OUTPUT = 256
"""Expected tokens of an answer before any has been seen."""
BYTES_PER_TOKEN = 4
_GRAIN_S = 0.002
"""Margin in seconds, because clocks differ in their last millisecond."""
_SHORTEST_S, _USUAL_S, _LONGEST_S = 0.05, 1.0, 30.0


def bounds_of(terms: Terms, now: float) -> Bounds:
    """Bounds of the tenant's account."""
    return Bounds(
        requests_per_minute=terms.requests_per_minute,
        tokens_per_minute=terms.tokens_per_minute,
        jobs=terms.concurrent,
        waiting=terms.queued,
        budgets=budgets(now, per_day=terms.tokens_per_day, per_month=terms.tokens_per_month),
    )


def expected_output(standing: Standing) -> int:
    """Expected tokens of one answer: the exponentially weighted mean of the tenant's answers."""
    return FIRST_OUTPUT if standing.mean_output is None else math.ceil(standing.mean_output)


def refusal(standing: Standing, bounds: Bounds, *, tokens: float, least: float = 1, vacancy_s: float) -> AxonError:
    """The error for a refused request. It would set ``tokens`` aside and use at least ``least``; for a limit on the
    number of turns, one is likely to end in ``vacancy_s`` seconds."""
    match standing.refused:
        case Bound.BUDGET:
            return _spent(standing, bounds, least)
        case Bound.BUDGET_HELD:
            return LimitReached(
                "What is left of your budget of tokens is set aside for requests of yours that run or wait; what they "
                "do not use is free when they end.",
                code="budget_reserved",
                retry_after_s=vacancy_s,
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
                retry_after_s=vacancy_s,
            )
    return LimitReached(
        f"{bounds.jobs} requests of yours are queued or running, which is your limit.",
        code="concurrency_limit",
        retry_after_s=vacancy_s,
    )


def vacancy_s(standing: Standing) -> float:
    """Seconds until one of an account's jobs is likely to end: their mean duration over their number."""
    if standing.mean_s is None:
        return _USUAL_S
    return min(_LONGEST_S, max(_SHORTEST_S, standing.mean_s / max(1, standing.jobs)))


def _refill_s(needed: float, level: float, per_minute: float) -> float:
    """Seconds until the bucket has refilled from ``level`` to ``needed``, rounded up to a millisecond."""
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
