"""A fleet is restarted under load, process after process, and nobody who asks it notices."""

import asyncio
from collections.abc import Callable

import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.rolling import KINDS, rolled, show


@pytest.mark.services
@pytest.mark.timeout(300)
def test_no_request_fails_while_every_process_is_restarted(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.005).start()
    report = asyncio.run(rolled(fleet, 60, clients=4))
    show(report)
    assert {each.name for each in report.restarts} >= {member.name for member in fleet.members}
    assert report.failures == []
    assert {each.name: each.code for each in report.restarts if each.code != 0} == {}
    assert set(report.kinds) == set(KINDS)
