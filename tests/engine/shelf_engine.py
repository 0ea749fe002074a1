"""Conversations against an engine with a shelf, for tests of what comes back from it. Holds no assertions."""

from dataclasses import dataclass

from axon.engine.core import EngineCore
from axon.engine.protocol.messages import Add
from axon.engine.schedule.copy_cost import CopyCosts
from tests.engine.builders import make_add


class AlwaysCopy(CopyCosts):
    """Takes copies for cheaper than the tiny models of tests, which compute faster than any file is read."""

    def prefers_copy(self, *, num_tokens: int, num_loads: int, num_reads: int) -> bool:
        return num_loads > 0


def prefer_copies(engine: EngineCore) -> None:
    """Has the engine load whatever its shelf has, if it has one."""
    if engine._scheduler.shelf is not None:
        engine._scheduler.shelf.costs = AlwaysCopy()


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine said, and how much of the prompt it had."""

    token_ids: list[int]
    num_cached: int


def ask(engine: EngineCore, add: Add) -> Answer:
    """Runs one sequence to its end."""
    return ask_all(engine, [add])[add.id]


def ask_all(engine: EngineCore, adds: list[Add]) -> dict[str, Answer]:
    """Runs several at once to their ends; raises for one that is refused."""
    tokens: dict[str, list[int]] = {add.id: [] for add in adds}
    cached = dict.fromkeys(tokens, 0)
    for add in adds:
        engine.add(add)
    for _ in range(20_000):
        if not engine.has_work:
            break
        output = engine.step()
        assert not output.refused, output.refused
        for each in output.emitted:
            tokens[each.id].append(each.token)
            cached[each.id] += each.cached
    assert not engine.has_work, "the engine does not come to an end"
    engine.check()
    return {id: Answer(tokens[id], cached[id]) for id in tokens}


def conversation(number: int, num_tokens: int, *, tenant: str = "", session: str = "", **sampling: object) -> Add:
    """A prompt of its own, always the same for a number."""
    prompt = [(number * 7919 + index * index * 31 + index) % 256 for index in range(num_tokens)]
    return make_add(f"talk-{number}", prompt=prompt, tenant=tenant, session=session, **sampling)  # type: ignore[arg-type]
