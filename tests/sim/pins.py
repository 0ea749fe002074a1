"""What sessions were promised about their versions, checked when a schedule is over."""

import itertools
from collections import defaultdict

from axon.domain.turn import Turn, TurnState
from tests.sim.history import History, Resolution
from tests.sim.rollout import MAX_LAG_S, Plan
from tests.sim.world import DRY, World

Said = tuple[Turn, Resolution]


def check_pins(world: World, plan: Plan) -> None:
    history = world.history
    generations: dict[tuple[str, int], list[Said]] = defaultdict(list)
    for turn in world.store.all.values():
        if turn.code in ("version_gone", "deployment_gone"):
            raise history.broken(f"{turn.id} was ended as {turn.code}")
        if turn.state is TurnState.EXPIRED and not turn.tokens and world.terms is not DRY:
            raise history.broken(f"{turn.id} has expired, and a worker had its version")
        if turn.job.pin:
            resolution = history.resolutions[turn.id, turn.job.created]
            generations[turn.job.pin, turn.job.generation].append((turn, resolution))
    for (key, generation), said in generations.items():
        _check_version(history, said)
        for turn, resolution in said:
            _check_state(history, plan, turn, resolution)
        if generation:
            _check_move(history, plan, said, generations.get((key, generation - 1), []))


def _check_version(history: History, said: list[Said]) -> None:
    """One version, but where a flush came between two first turns that were both under way."""
    in_order = sorted(said, key=lambda each: each[1].at)
    split = [
        (first, second)
        for first, second in itertools.combinations(in_order, 2)
        if first[0].job.version != second[0].job.version
    ]
    if split and not any(_is_excused(history, first, second) for first, second in split):
        (one, _), (other, _) = split[0]
        raise history.broken(f"{one.id} is on {one.job.version}, {other.id} of its session on {other.job.version}")


def _is_excused(history: History, first: Said, second: Said) -> bool:
    (turn, decided), (_, later) = first, second
    flushed = any(decided.began <= at <= later.at for at in history.flushes)
    return flushed and history.opened_at[turn.id][0] >= later.began


def _check_state(history: History, plan: Plan, turn: Turn, resolution: Resolution) -> None:
    failed_at = plan.failed_at.get(turn.job.version)
    if failed_at is not None and resolution.began > failed_at + MAX_LAG_S:
        raise history.broken(f"{turn.id} began on {turn.job.version}, which was gone")


def _check_move(history: History, plan: Plan, said: list[Said], before: list[Said]) -> None:
    """A session moves off a version that is gone, and its first turn after that tells it."""
    first, resolution = min(said, key=lambda each: history.opened_at[each[0].id][0])
    if not resolution.is_told or first.job.trace != "moved":
        raise history.broken(f"{first.id} is on {first.job.version} after a move that it does not tell")
    for turn, _ in before:
        failed_at = plan.failed_at.get(turn.job.version)
        if failed_at is None or failed_at > resolution.at:
            raise history.broken(f"{first.id} was moved off {turn.job.version}, which was not gone")
