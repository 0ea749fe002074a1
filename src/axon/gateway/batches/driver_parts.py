"""What every driver of a gateway's batches uses. Values only."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from axon.domain.batch import Batch
from axon.domain.tenants.tenant import Terms
from axon.gateway.batches.calls import Calls
from axon.gateway.batches.config import BatchesConfig
from axon.ports.batch_store import BatchStore, FileRecords
from axon.ports.files import FileStore
from axon.runtime.clock import Clock
from axon.telemetry.declared.work import BatchMetrics
from axon.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverParts:
    """What every driver of a gateway uses."""

    config: BatchesConfig
    files: FileRecords
    bytes: FileStore
    batches: BatchStore
    calls: Calls
    clock: Clock
    max_body_bytes: int
    check_model: Callable[[Batch, Terms, str], None]
    """Raises if a batch may not ask this model, or there is none of this name."""
    terms: Callable[[str], Awaitable[Terms | None]]
    """The terms that hold for a tenant now; None while it is suspended."""
    metrics: BatchMetrics = field(default_factory=lambda: Metrics().batches)
