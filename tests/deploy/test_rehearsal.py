"""A release is upgraded by the chart's rules on this machine, and a probe that fails restarts its process."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.deploy.rehearsal.__main__ import rehearse, show
from tests.long import whole


@pytest.mark.services
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not whole(), reason="probes have deadlines of seconds, which need a machine of their own")
def test_no_stream_fails_while_every_pod_is_replaced_and_others_hang() -> None:
    speed, hang = 1.0, ("worker", "gateway")
    with tempfile.TemporaryDirectory(prefix="axon-rehearsal-") as name:  # pytest's own is shut to nginx's user
        folder = Path(name)
        folder.chmod(0o755)
        found = asyncio.run(rehearse(folder, requests=1000, speed=speed, hang=hang))
    show(found)
    assert found.upgrade.failures == []
    assert found.probes.failures == []
    assert found.unasked == []
    assert found.ok
