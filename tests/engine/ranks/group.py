"""A group as its worker has it: an engine process that leads, and the ranks below it."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axon.engine.protocol.codec import Start
from axon.engine.protocol.messages import Add, Counters, Emitted, Ready, StepOutput
from tests.engine.builders import with_config
from tests.engine.peer import Peer
from tests.journeys.server import wait_until

CUTTABLE = {"num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 64}
"""Changes to the tiny model with which 2 and 4 ranks can share it; 4 share 2 KV heads."""


class Group(Peer):
    """Opened at once; ``run`` does what ``builders.run_to_end`` does."""

    def __init__(self, folder: Path, size: int, **changes: Any) -> None:
        super().__init__()
        self.send(Start(config=with_config(tensor_parallel=size, **changes), model_dir=str(folder)))
        self.last = Counters()
        self.scored: dict[str, list[tuple[float, int, list[tuple[int, float]]]]] = {}
        """The log probabilities of the prompts of the last run."""

    def ready(self) -> Ready:
        return self.receive(Ready)

    def rank_pids(self) -> list[int]:
        """Of the ranks that this host's leading rank has started."""
        return children_of(self.process.pid)

    def run(self, adds: list[Add]) -> dict[str, list[int]]:
        """Adds all at once and reads until all have ended."""
        self.scored.clear()
        self.send(*adds)
        tokens: dict[str, list[int]] = {add.id: [] for add in adds}
        left = set(tokens)
        while left:
            for emitted in self.step():
                tokens[emitted.id].append(emitted.token)
                if emitted.finish:
                    left.remove(emitted.id)
        return tokens

    def step(self) -> list[Emitted]:
        output = self.receive(StepOutput)
        self.last = output.counters
        for scored in output.scored:
            self.scored.setdefault(scored.id, []).extend(scored.logprobs)
        return output.emitted

    def end(self) -> None:
        """Hangs up; nobody may be left behind."""
        pids = self.rank_pids()
        self.close()
        wait_until_gone(pids)


@contextmanager
def opened(folder: Path, size: int, **changes: Any) -> Iterator[Group]:
    """A group for the length of a block."""
    group = Group(folder, size, **changes)
    try:
        yield group
    finally:
        group.end()


def children_of(pid: int) -> list[int]:
    """Of all its threads."""
    tasks = Path(f"/proc/{pid}/task")
    try:
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    except FileNotFoundError:
        return []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(pids: list[int]) -> None:
    gone: Callable[[], bool] = lambda: not any(map(alive, pids))  # noqa: E731
    wait_until(gone, f"processes {pids} end", timeout_s=60)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    os.kill(pid, number)
