"""A release is upgraded by the chart's rules on this machine, and a probe that fails restarts its process."""

import pytest

from tests.deploy.rehearsal.__main__ import rehearse, show
from tests.long import whole


@pytest.mark.services
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not whole(), reason="probes have deadlines of seconds, which need a machine of their own")
def test_no_stream_fails_while_every_pod_is_replaced_and_others_hang() -> None:
    found = rehearse(1000, speed=1.0, hang=("worker", "gateway"))
    show(found)
    assert found.upgrade.failures == []
    assert found.probes.failures == []
    assert found.unasked == []
    assert found.ok
