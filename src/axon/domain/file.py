"""Files that tenants upload and batches write. Values only: a ``FileStore`` keeps the bytes."""

from dataclasses import dataclass
from enum import StrEnum


class Purpose(StrEnum):
    """What a file is for."""

    BATCH = "batch"
    """The input of a batch, which a tenant uploads."""
    BATCH_OUTPUT = "batch_output"
    """The answers or the errors of a batch, which the server writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The record of a file, without its bytes."""

    id: str
    tenant: str
    filename: str
    purpose: Purpose
    num_bytes: int
    created_at: float
    expires_at: float
    """Unix time from which it is deleted."""
