"""Gathers inputs of an embedding model into microbatches, fairly over tenants. No I/O, no clock, no tensors.

A batch is due when it is full, when it has so many tokens that more would make none of them cheaper, when its oldest
input has waited long enough, or when the inputs of one request alone wait: nobody else would join it. Which inputs it
takes is decided by virtual token counters (VTC), as everywhere.
"""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from axon.domain.fairness.virtual_counters import VirtualCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One text that waits for its vector."""

    id: str
    token_ids: Sequence[int]
    second_start: int = 0
    """Index at which the second text of a pair begins; 0 for a single text."""
    request: tuple[str, int]
    """Inputs of one request have the same tenant and the same seed."""
    priority: int = 0
    weight: float = 1.0
    deadline: float | None = None
    arrived_at: float
    """Monotonic time in seconds."""

    @property
    def tenant(self) -> str:
        return self.request[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The bounds of a batch; one input always fits, however long it is."""

    max_inputs: int = 32
    max_tokens: int = 512
    enough_tokens: int = 512
    """Tokens from which a batch is not gathered any longer: it uses the machine as well as a larger one would."""
    gather_s: float = 0.02
    """Seconds that an input waits for others at most, if inputs of several requests wait."""


class Gathering:
    """The inputs that wait: ``add`` and ``drop`` them, ask ``wait_s``, and ``take`` a batch."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._queues: dict[tuple[int, str], deque[Input]] = {}
        """Inputs by priority (the highest is the most negative) and tenant, in the order they came; none is empty."""
        self._counters = VirtualCounters()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    @property
    def ids(self) -> list[str]:
        """The ids of all inputs that wait."""
        return [each.id for queue in self._queues.values() for each in queue]

    def add(self, new: Input) -> None:
        """An input has come."""
        tenants = self._tenants()
        if new.tenant not in tenants:
            self._counters.raise_level(tenants)
            self._counters.lift(new.tenant)
        self._queues.setdefault((-new.priority, new.tenant), deque()).append(new)

    def drop(self, ids: Collection[str]) -> None:
        """Forgets inputs; unknown ids are ignored."""
        gone = set(ids)
        for key, queue in list(self._queues.items()):
            if any(each.id in gone for each in queue):
                self._keep(key, deque(each for each in queue if each.id not in gone))

    def expired(self, now: float) -> list[str]:
        """Takes the inputs out whose deadline (Unix time) has passed, and returns their ids."""
        late = [
            each.id
            for queue in self._queues.values()
            for each in queue
            if each.deadline is not None and each.deadline < now
        ]
        self.drop(late)
        return late

    def wait_s(self, now: float) -> float | None:
        """Seconds until the next batch is due: 0 if it is due now, None if nothing waits."""
        waiting = [each for queue in self._queues.values() for each in queue]
        if not waiting:
            return None
        is_full = len(waiting) >= self._limits.max_inputs
        enough = min(self._limits.enough_tokens, self._limits.max_tokens)
        is_full = is_full or sum(len(each.token_ids) for each in waiting) >= enough
        if is_full or len({each.request for each in waiting}) == 1:
            return 0.0
        oldest = min(each.arrived_at for each in waiting)
        return max(0.0, oldest + self._limits.gather_s - now)

    def take(self) -> list[Input]:
        """Takes the next batch out: the highest priority first, then the tenants served least, each in its order."""
        batch: list[Input] = []
        num_tokens = 0
        while self._queues and len(batch) < self._limits.max_inputs:
            key = min(self._queues, key=lambda each: (each[0], self._counters.of(each[1]), self._queues[each][0].id))
            queue = self._queues[key]
            num_tokens += len(queue[0].token_ids)
            if batch and num_tokens > self._limits.max_tokens:
                break
            batch.append(first := queue.popleft())
            self._counters.charge(first.tenant, len(first.token_ids) / first.weight)
            self._keep(key, queue)
        active = self._tenants()
        self._counters.raise_level(active or {each.tenant for each in batch})
        self._counters.forget(active)
        return batch

    def _tenants(self) -> set[str]:
        return {tenant for _, tenant in self._queues}

    def _keep(self, key: tuple[int, str], queue: deque[Input]) -> None:
        if queue:
            self._queues[key] = queue
        else:
            del self._queues[key]
