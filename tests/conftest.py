"""Fixtures every test folder shares. Knows no adapter."""

import pytest
from hypothesis import HealthCheck, settings

from axon.runtime.clock import FakeClock

# A test that is slow because the machine is busy is right all the same.
settings.register_profile("axon", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("axon")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
