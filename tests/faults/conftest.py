"""Fixtures of the fault tests: a seed, a place, and the history on paper when a test fails."""

import os
import random
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.fleet import Place, shared_place
from tests.faults.workload import Workload

if TYPE_CHECKING:
    from tests.faults.history import History

_FAILED = pytest.StashKey[bool]()


@pytest.fixture
def seed() -> int:
    """Fixed by AXON_FAULT_SEED; printed when a test fails."""
    return int(os.environ.get("AXON_FAULT_SEED") or random.randrange(1 << 32))


@pytest.fixture
def victims() -> Iterator[Path]:
    """For the data of servers that the test breaks. Not below pytest's own folder: another run shuts that to all but
    its user, and as root our servers are somebody else."""
    with tempfile.TemporaryDirectory(prefix="axon-faults-") as folder:
        yield Path(folder)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Makes the test's place; its servers end with the test."""
    with ExitStack() as stack:
        yield lambda **own: shared_place(tmp_path, stack, **own)


@pytest.fixture
def workload(tmp_path: Path, seed: int, request: pytest.FixtureRequest) -> Iterator[Callable[..., Workload]]:
    """Makes the test's workload; whatever it was told is written down and named when the test fails."""
    histories: list[History] = []

    def make(*arguments: Any, **options: Any) -> Workload:
        work = Workload(*arguments, seed=seed, **options)
        histories.append(work.history)
        return work

    yield make
    if request.node.stash.get(_FAILED, False):
        for number, history in enumerate(histories):
            path = tmp_path / f"history-{number}.jsonl"
            history.write(path)
            print(f"seed {history.seed}, again with AXON_FAULT_SEED={history.seed}; the history is in {path}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Lets a fixture know whether its test has failed."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report
