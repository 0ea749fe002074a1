"""What every test folder shares: a clock, hypothesis's profile, and servers that are forked. Knows no adapter."""

import pytest
from hypothesis import HealthCheck, settings

from axon.runtime.clock import FakeClock
from tests.services import warm

# A test that is slow because the machine is busy is right all the same.
settings.register_profile("axon", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("axon")

warm.enable()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
