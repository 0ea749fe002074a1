"""A release is upgraded by the chart's rules on this machine, and a probe that fails restarts its process."""

import pytest

from tests.deploy.rehearsal.__main__ import rehearse, show
from tests.long import share, whole


@pytest.mark.services
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_no_stream_fails_while_every_pod_is_replaced_and_others_hang() -> None:
    """In a short run the cluster's clock is ten times as fast, and a tenth of the streams is asked."""
    speed, hang = (1.0, ("worker", "gateway")) if whole() else (10.0, ("worker",))
    found = rehearse(int(share(1000)), speed=speed, hang=hang)
    show(found)
    assert found.upgrade.failures == []
    assert found.probes.failures == []
    assert found.unasked == []
    assert found.ok
