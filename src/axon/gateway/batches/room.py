"""What the routes of files and batches share: the parts that bootstrap passes in. Knows no route."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request

from axon.gateway.batches.config import BatchesConfig
from axon.gateway.http.tenant_places import TenantPlaces
from axon.ports.batch_store import BatchStore, FileRecords
from axon.ports.files import FileStore


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchParts:
    """Files, batches and the runner of this gateway."""

    config: BatchesConfig
    files: FileRecords
    bytes: FileStore
    batches: BatchStore
    wake: Callable[[], None]
    """Tells this gateway's runner that there is something to do."""
    uploads: TenantPlaces
    """The uploads of each tenant that are being read."""


def upload_places(max_of_tenant: int, max_in_all: int) -> TenantPlaces:
    """Places for uploads; a tenant that has all of its own is refused, and everybody while none is left: each upload
    to a bucket holds some parts in memory."""
    message = f"{max_of_tenant} files of yours are being uploaded, which is the limit."
    return TenantPlaces(max_of_tenant, message, code="upload_limit", retry_after_s=1.0, max_in_all=max_in_all)


def room_of(request: Request) -> BatchParts:
    """Returns the parts behind the routes of files and batches."""
    room: BatchParts = request.app.state.batches
    return room
