"""Fixtures of the fleet's tests: a fleet for a file's journeys, and one for each test that breaks it."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.conformance.conftest import SCRIPT
from tests.fleet.face import Face
from tests.fleet.fleet import Fleet, shared_fleet
from tests.journeys.conftest import FEW_LANES, PATIENT, past

__all__ = ["past"]


@contextmanager
def fleets() -> Iterator[Callable[..., Fleet]]:
    """Makes fleets, not started, that end with the block."""
    # Not below pytest's own folder, which is shut to the user that nginx runs as.
    with tempfile.TemporaryDirectory(prefix="axon-fleet-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        yield lambda **settings: shared_fleet(folder, stack, **{"dispatch_num_lanes": FEW_LANES, **PATIENT, **settings})


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Two gateways, two workers, one control, shared by the journeys that leave it as it was."""
    with fleets() as make:
        settings = {"engine_echo_step_s": 0.005, "engine_echo_script": SCRIPT, "admission_requests_per_minute": 100_000}
        yield make(**settings).start()


@pytest.fixture(scope="module")
def slow(fleet: Fleet) -> Face:
    """The fleet, to tests that were written for one server."""
    return Face(fleet)


@pytest.fixture(scope="module")
def echo(slow: Face) -> Face:
    """The same: clients do not mind that its tokens take their time."""
    return slow


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Face]:
    """A fleet whose model's context is short."""
    with fleets() as make:
        yield Face(make(engine_max_model_len=128).start())


@pytest.fixture
def fresh() -> Iterator[Callable[..., Fleet]]:
    """Makes a fleet of the test's own, not started."""
    with fleets() as make:
        yield make
