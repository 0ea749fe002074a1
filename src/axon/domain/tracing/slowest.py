"""The slowest turns of a while, and the steps that their time went to. Pure."""

from collections.abc import Sequence
from statistics import median

import msgspec

from axon.domain.tracing.drawn import step_seconds
from axon.domain.tracing.turn_spans import model_of, times_of
from axon.domain.turn import Turn


class StepShare(msgspec.Struct, frozen=True, kw_only=True):
    """One step, in all turns and in the slowest of a hundred."""

    name: str
    median_s: float
    """Median seconds of the step over all turns."""
    tail_s: float
    """Mean seconds of the step in the slowest of a hundred."""
    share: float
    """The step's share of the time of the slowest of a hundred, 0 to 1."""


class SlowTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One of the slowest turns."""

    id: str
    request: str
    tenant: str
    model: str
    state: str
    seconds: float
    longest: str
    """The step that took longest."""
    longest_s: float
    attempts: int


class Slowest(msgspec.Struct, frozen=True, kw_only=True):
    """What the slowest turns of a while are made of."""

    num_turns: int
    """Turns that were looked at."""
    since_s: float
    """Seconds back to the oldest of them."""
    p50_s: float
    p99_s: float
    steps: tuple[StepShare, ...]
    """The step with the largest share first."""
    turns: tuple[SlowTurn, ...]
    """The slowest first."""


def slowest(turns: Sequence[Turn], *, most: int, now: float) -> Slowest:
    """Looks at ended turns; ``most`` of the slowest are listed."""
    timed = sorted(((step_seconds(turn), turn) for turn in turns), key=lambda each: -sum(each[0].values()))
    if not timed:
        return Slowest(num_turns=0, since_s=0.0, p50_s=0.0, p99_s=0.0, steps=(), turns=())
    wholes = [sum(steps.values()) for steps, _ in timed]
    tail = [steps for steps, _ in timed[: max(1, len(timed) // 100)]]
    return Slowest(
        num_turns=len(timed),
        since_s=max(0.0, now - min(turn.ended_at or now for turn in turns)),
        p50_s=median(wholes),
        p99_s=wholes[len(tail) - 1],
        steps=_shares([steps for steps, _ in timed], tail),
        turns=tuple(_slow(steps, turn) for steps, turn in timed[:most]),
    )


def _shares(all_steps: Sequence[dict[str, float]], tail: Sequence[dict[str, float]]) -> tuple[StepShare, ...]:
    whole_s = sum(sum(steps.values()) for steps in tail)
    names = {name for steps in tail for name in steps}
    found = []
    for name in names:
        tail_s = sum(steps.get(name, 0.0) for steps in tail)
        found.append(
            StepShare(
                name=name,
                median_s=median(steps.get(name, 0.0) for steps in all_steps),
                tail_s=tail_s / len(tail),
                share=tail_s / whole_s if whole_s else 0.0,
            )
        )
    return tuple(sorted(found, key=lambda step: (-step.share, step.name)))


def _slow(steps: dict[str, float], turn: Turn) -> SlowTurn:
    longest = max(steps, key=lambda name: steps[name], default="")
    return SlowTurn(
        id=turn.id,
        request=times_of(turn).request,
        tenant=turn.tenant,
        model=model_of(turn.job),
        state=turn.state.value,
        seconds=sum(steps.values()),
        longest=longest,
        longest_s=steps.get(longest, 0.0),
        attempts=turn.ledger.attempts if turn.ledger else 0,
    )
