"""A worker shows its lease and what it holds, and nothing once it has left."""

import asyncio
import contextlib
from unittest.mock import Mock

from axon.ports.queue import Delivery
from axon.runtime.clock import FakeClock
from axon.telemetry.engine_report import WorkerLabels
from axon.telemetry.metrics import Metrics
from axon.worker.queue.parked import Parked
from axon.worker.reporting import Reporting

WHO = WorkerLabels("small", "v1", "worker-1", "zone-a")


def test_the_lease_and_the_parked_deliveries_are_shown_until_the_worker_leaves() -> None:
    metrics, clock, parked = Metrics(), FakeClock(), Parked()
    parked.add(Delivery(tag=1, lane="small/00", body=b"", redelivered=False))
    lease = Mock(renewed_at=clock.monotonic() - 2.5)
    reporting = Reporting(lambda: WHO, parked, lease, metrics, clock, pool="gold")

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    async def story() -> None:
        running = asyncio.create_task(reporting.run())
        await asyncio.sleep(0)
        assert value("axon_worker_lease_age_seconds", worker="worker-1") == 2.5
        assert value("axon_held_jobs", **WHO._asdict()) == 1
        assert value("axon_worker_info", **WHO._asdict(), pool="gold") == 1
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    asyncio.run(story())
    assert value("axon_worker_info", **WHO._asdict(), pool="gold") is None
    assert value("axon_worker_lease_age_seconds", worker="worker-1") is None
