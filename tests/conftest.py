"""Fixtures every test folder shares. Knows no adapter."""

import pytest

from axon.runtime.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
