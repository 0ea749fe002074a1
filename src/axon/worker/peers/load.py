"""Measures how busy this worker is, which it announces to gateways and other workers. No I/O."""

from axon.domain.presence import Load
from axon.worker.child.supervisor import Supervisor
from axon.worker.job.hands import Hands

CROWDED_S = 1.0
"""While a sequence has had no place in the engine's steps for this long, no free slots are announced."""


def measure_free_slots(hands: Hands, supervisor: Supervisor, now: float) -> int:
    """Sequences that the worker could still take at the monotonic time ``now``; also lets the throughput close its
    window."""
    num_sequences, slots = hands.num_sequences, hands.slots
    is_crowded = hands.is_full or not hands.has_engine or supervisor.longest_wait_s >= CROWDED_S
    supervisor.throughput.look(now, is_busy=num_sequences >= slots)
    return 0 if is_crowded else max(0, slots - num_sequences)


def measure_load(hands: Hands, supervisor: Supervisor, now: float) -> Load:
    """The load at the monotonic time ``now``; also lets the throughput close its window."""
    free_slots, slots = measure_free_slots(hands, supervisor, now), hands.slots
    return Load(
        slots=slots,
        free_slots=free_slots,
        num_tokens=sum(each.job.num_prompt_tokens + len(each.tokens) for each in hands.running.values()),
        tokens_per_s=round(supervisor.throughput.tokens_per_s, 1),
        service=supervisor.served.told(
            now,
            slots=slots,
            answers=supervisor.answers,
            running=hands.running.values(),
        ),
        activity=supervisor.served.activity.told((job.tenant, job.choices) for job in hands.jobs),
    )
