"""Every fault there is, in the order in which they share stages."""

from tests.faults import (
    alone_faults,
    gateway_faults,
    job_faults,
    postgres_faults,
    rabbitmq_faults,
    redis_faults,
    structured_faults,
    worker_faults,
    zone_faults,
)
from tests.faults.fault import Fault
from tests.faults.stage import KINDS

_ALL: list[Fault] = [
    *worker_faults.FAULTS,
    *gateway_faults.FAULTS,
    *job_faults.FAULTS,
    *structured_faults.FAULTS,
    *rabbitmq_faults.FAULTS,
    *redis_faults.FAULTS,
    *postgres_faults.FAULTS,
    *zone_faults.FAULTS,
    *alone_faults.FAULTS,
]

FAULTS: list[Fault] = sorted(_ALL, key=lambda fault: KINDS.index(fault.stage))


def named(words: str) -> list[Fault]:
    """The faults whose name has the words in it; words between commas are alternatives."""
    wanted = [word.strip().lower() for word in words.split(",")]
    return [fault for fault in FAULTS if any(word in fault.name.lower() for word in wanted)]
