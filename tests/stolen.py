"""Processor time that the machine's host gave to others, and the tests that failed meanwhile. Knows no test.

A virtual machine whose host is busy stands still for seconds without being able to notice: a broker then misses its
deadline although nothing is wrong with it or with its client. A test that fails while much time was stolen has shown
nothing, so it is run again, with fixtures of its own, and the summary names it. A failure on a machine that had its
time counts at once.
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.outcomes import OutcomeException
from _pytest.runner import runtestprotocol

MUCH = 0.15
"""Share of the processor time from which on a failure shows nothing."""
TRIES = 3
LONGEST_S = 100.0
"""A test that has taken longer is not run again: one timeout is for all of its runs."""
_STAT = Path("/proc/stat")
_PROPERTY = "failed while time was stolen"


@dataclass(frozen=True, slots=True)
class Times:
    """Ticks of all processors since the start, and those of them that were stolen."""

    total: int = 0
    stolen: int = 0


def parse(stat: str) -> Times:
    """The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user."""
    ticks = [int(word) for word in stat.partition("\n")[0].split()[1:9]]
    return Times(total=sum(ticks), stolen=ticks[7]) if len(ticks) == 8 else Times()


def share(before: Times, after: Times) -> float:
    """Part of the time between the two that was stolen."""
    return (after.stolen - before.stolen) / max(1, after.total - before.total)


def now() -> Times:
    return parse(_STAT.read_text()) if _STAT.exists() else Times()


def run(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """The reports of a test, of its last run where it was run again."""
    started = time.monotonic()
    for left in reversed(range(TRIES)):
        before = now()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        stolen = share(before, now())
        if not left or stolen < MUCH or not any(report.failed for report in reports):
            break
        if time.monotonic() - started > LONGEST_S:
            break
        item.user_properties.append((_PROPERTY, f"{stolen:.0%}"))
        _set_up_anew(item)
    return reports


def _set_up_anew(item: Any) -> None:
    """What a failed run had set up is torn down, also what other tests share, which may be what is broken."""
    with suppress(Exception, OutcomeException, BaseExceptionGroup):  # a failed run's servers may not stop cleanly
        item.session._setupstate.teardown_exact(None)
    item._initrequest()


def told(reports: list[pytest.TestReport]) -> list[str]:
    """A line for each run that was not counted."""
    return [
        f"{report.nodeid} failed while {value} of the machine's time was stolen, and was run again"
        for report in reports
        for name, value in report.user_properties
        if name == _PROPERTY and report.when == "teardown"
    ]
