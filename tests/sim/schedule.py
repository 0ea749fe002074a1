"""One seed's life: torment, heal, settle down; then every promise is checked."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import structlog

from axon.domain.failure import Failure
from axon.domain.fairness.lane import letter_of
from axon.domain.session.conversation import answer_id
from axon.domain.tenants.account import Bounds, Round
from axon.domain.turn import Turn, TurnState
from tests.sim.clients import Asked, Client
from tests.sim.engine import POISON_SEED, stream_of
from tests.sim.history import History, Violation
from tests.sim.loop import SimLoop, Stuck
from tests.sim.pins import check_pins
from tests.sim.rollout import COLD, LETTERS
from tests.sim.world import GRACE_S, TICKET_S, World

HORIZON_S = 5.0
SETTLE_S = 90.0
PATIENCE_S = 60.0
"""How long after the last fault turns of a version without a worker may be the only ones that wait."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a schedule came to."""

    seed: int
    violation: str
    events: list[str]
    num_turns: int


def run(seed: int) -> Outcome:
    """Runs one schedule; the same seed gives the same history."""
    loop = SimLoop()
    loop.set_exception_handler(lambda loop, context: None)
    kept: list[History] = []
    num_turns, problem = 0, ""
    try:
        with silence():
            num_turns = loop.run(_live(seed, loop, kept))
    except Stuck as error:
        problem = str(error)
    except Violation:
        pass
    return Outcome(seed, kept[0].violation or problem, kept[0].events, num_turns)


@contextmanager
def silence() -> Iterator[None]:
    """Nothing is logged in the block; afterwards as before."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


async def _live(seed: int, loop: SimLoop, kept: list[History]) -> int:
    world = World(seed, loop)
    kept.append(world.history)
    clients = [Client(world, f"client{number}") for number in range(world.rng.randint(2, 4))]
    more = 0 if world.plan is None else 2  # sessions go on after their versions have changed
    reading = [loop.create_task(client.run(world.rng.randint(1, 3) + more)) for client in clients]
    if world.is_cold:
        clients.append(Client(world, "patient"))
        reading.append(loop.create_task(clients[-1].ask_cold(3)))
    if world.is_poisoned:
        clients.append(Client(world, "poisoner"))
        reading.append(loop.create_task(clients[-1].ask_poison()))
    await world.torment(HORIZON_S)
    world.heal()
    await _settled(world, reading)
    asked = [each for client in clients for each in client.asked]
    _check(world, asked)
    await _check_bill(world, asked)
    return len(world.history.opened)


async def _settled(world: World, reading: list["asyncio.Task[None]"]) -> None:
    deadline = world.loop.monotonic() + SETTLE_S
    while world.loop.monotonic() < deadline:
        await asyncio.sleep(0.5)
        if world.history.violation:
            raise Violation
        if all(task.done() for task in reading) and _quiet(world):
            if not world.is_cold:
                return
            world.start_cold()
        elif world.is_cold and world.loop.monotonic() > deadline - SETTLE_S + PATIENCE_S:
            raise world.history.broken(f"held up by turns of a cold version: {_unrest(world)}")
    raise world.history.broken(f"not settled: {_unrest(world)}")


def _quiet(world: World) -> bool:
    return not _unrest(world)


def _unrest(world: World) -> str:
    is_cold = world.is_cold
    unfinished = [
        turn_id
        for turn_id, turn in world.history.opened.items()
        if not _ended(world, turn_id) and not (is_cold and turn.job.version == COLD)
    ]
    if unfinished:
        return f"{unfinished} have not ended"
    if any(queue.num_unacked for queue in world.queues):
        return "deliveries are not acked"
    lanes = [*world.broker._lanes, *world.broker._own]
    if sum(world.broker.depth(lane) for lane in lanes if not (is_cold and letter_of(lane, "sim") == LETTERS[COLD])):
        return "jobs are still waiting"
    if any(engine.num_sequences for engine in world.engines):
        return "sequences are left in an engine"
    return ""


def _ended(world: World, turn_id: str) -> bool:
    turn = world.store.all.get(turn_id)
    return turn is not None and turn.state.terminal


def _check(world: World, asked: list[Asked]) -> None:
    for turn in world.store.all.values():
        _check_turn(world, turn)
        _check_crash(world, turn)
    if world.plan is not None:
        check_pins(world, world.plan)
    refused = tuple(f"resp_{each.name}-" for each in asked if each.refused and not each.accepted)
    for each in asked:
        if each.accepted:
            _check_readings(world, each, world.store.all[each.job_id])
            _check_told(world, each, world.store.all[each.job_id], refused)


def _check_told(world: World, asked: Asked, turn: Turn, refused: tuple[str, ...]) -> None:
    """A turn of a conversation was told every answer that was there before it, and none that was not.

    An answer whose end was in a log alone, of a worker that died with it, is lost when the log then loses its tail: two
    faults at once. Who had gone on from it was told what was said. One whose client heard that it was not accepted, and
    that was run all the same because nobody could be told to stop it, holds up no conversation.
    """
    if asked.told is None:
        return
    others = [each for each in world.store.all.values() if each.job.session == turn.job.session and each.id != turn.id]
    completed = {answer_id(each.id): each for each in others if each.state is TurnState.COMPLETED}
    lost = {answer_id(turn_id) for turn_id in world.history.told & world.history.damaged}
    if strange := asked.told - completed.keys() - lost:
        raise world.history.broken(f"{turn.id} was told {strange}, which nobody said")
    for name, each in completed.items():
        if (each.ended_at or 0.0) < turn.opened_at and name not in asked.told and not each.id.startswith(refused):
            raise world.history.broken(f"{turn.id} was not told {each.id}, which had ended before it was asked")


def _check_turn(world: World, turn: Turn) -> None:
    history = world.history
    ids = [token.id for token in turn.tokens]
    log = history.logs.get(turn.id)
    if turn.state is TurnState.COMPLETED and len(ids) != len(stream_of(turn.job)):
        raise history.broken(f"{turn.id} is completed with {len(ids)} tokens")
    if turn.state is TurnState.COMPLETED and sorted(end.choice for end in turn.ends) != [*range(turn.job.choices)]:
        raise history.broken(f"{turn.id} is completed and its choices ended as {turn.ends}")
    if world.deterministic and ids != stream_of(turn.job)[: len(ids)]:
        raise history.broken(f"{turn.id} has other tokens than an undisturbed run")
    if turn.usage.output_tokens != len(ids):
        raise history.broken(f"{turn.id} is billed {turn.usage.output_tokens} tokens and has {len(ids)}")
    if turn.ledger is not None and turn.ledger.billed != turn.usage.total_tokens:
        raise history.broken(f"{turn.id} is billed {turn.usage.total_tokens} tokens and its ledger says {turn.ledger}")
    told = [] if history.costs_nothing(turn) or log is None else log.tokens
    if log is not None and log.ended and told != ids and turn.id not in history.damaged:
        raise history.broken(f"{turn.id}: the log says {told}, the store {ids}")
    quiet_since = history.lost_at + 2.0
    ended_at = (turn.ended_at or 0.0) - world.loop.now() + world.loop.monotonic()
    if ended_at > quiet_since and turn.id not in history.told and not (log is not None and log.ended):
        raise history.broken(f"{turn.id} has ended, and the log does not know")


def _check_crash(world: World, turn: Turn) -> None:
    """Who crashes engines is found out, and nobody else is ended for it."""
    is_poison, is_convicted = turn.job.seed == POISON_SEED, turn.code == Failure.ENGINE_CRASH
    if is_poison and turn.state in (TurnState.COMPLETED, TurnState.EXPIRED):
        raise world.history.broken(f"{turn.id} crashed {world.num_poisoned} engines and was not found out")
    if is_convicted and not is_poison and turn.job.seed not in world.struck:
        raise world.history.broken(f"{turn.id} was ended for a crash that it had no part in")


def _check_readings(world: World, asked: Asked, turn: Turn) -> None:
    ids = [token.id for token in turn.tokens]
    for reading in asked.readings:
        if world.deterministic and reading.diverged:
            raise world.history.broken(f"{asked.job_id} diverged in a deterministic world")
        right = ids[reading.start : reading.start + len(reading.ids)]
        whole = reading.terminal or world.deterministic
        damaged = asked.job_id in world.history.damaged
        if damaged and not world.deterministic:
            continue  # generated anew, it may say something else than what was read to the end before
        if whole and turn.state is TurnState.COMPLETED and reading.ids != right:
            raise world.history.broken(f"{asked.job_id}: read {reading.ids} from {reading.start}, stored {ids}")
        if damaged:
            continue  # what the log forgot after it was read may end otherwise
        asked_for = asked.cancelled or asked.left or asked.refused
        absent = asked.longest_silence_s > GRACE_S / 2
        if turn.state is TurnState.CANCELLED and not asked_for and not absent:
            raise world.history.broken(f"{asked.job_id} was cancelled, and nobody asked for it")
        if reading.terminal == TurnState.COMPLETED and reading.start + len(reading.ids) != len(ids):
            raise world.history.broken(f"{asked.job_id}: the reader has not got all of it")
        if reading.terminal and reading.terminal != turn.state:
            raise world.history.broken(f"{asked.job_id}: read as {reading.terminal}, stored as {turn.state}")


async def _check_bill(world: World, asked: list[Asked]) -> None:
    """What was counted is what was delivered, and every ticket is given back: at once, or lapsed within its time."""
    await asyncio.sleep(TICKET_S + 1.0)
    fleet = Round(account="fleet//", beats=(), bounds=Bounds(), ttl_s=1.0)
    tenants = sorted({turn.tenant for turn in world.history.opened.values()})
    rounds = [replace(fleet, account=f"tenant/{tenant}") for tenant in tenants]
    for each, standing in zip([fleet, *rounds], await world.live.accounts.beat([fleet, *rounds]), strict=True):
        if (standing.jobs, standing.waiting, standing.work) != (0, 0, 0):
            raise world.history.broken(f"{each.account} still holds tickets: {standing}")
        tenant = each.account.removeprefix("tenant/")
        used = sum(turn.usage.total_tokens for turn in world.store.all.values() if turn.tenant == tenant)
        # Who was told that it is not accepted pays nothing; what a lost memory had counted is counted anew.
        refused = any(one.refused for one in asked if one.name.startswith(f"{tenant}."))
        spent = standing.spent.get("day", 0)
        if each is not fleet and not world.history.num_lost and (spent > used or (spent < used and not refused)):
            raise world.history.broken(f"{tenant} is charged {spent} tokens and has used {used}")
