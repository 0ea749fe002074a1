"""The section of the settings for files and batches."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesConfig:
    """Files that tenants upload, and batches of requests over them."""

    files_dir: str = field(default="", metadata={"default": "<data_dir>/files"})
    """Folder of the files' bytes, or ``s3://bucket/prefix``, whose endpoint, region and key are in ``AWS_`` variables.
    Gateways on several machines need one that all of them see."""
    max_file_bytes: int = 200 << 20
    """A larger file is refused with 413. What a tenant may store in all is its limit ``stored_bytes``."""
    upload_timeout_s: float = 600.0
    """An upload that takes longer is refused with 408, and so is one that brings nothing for
    ``gateway.body_timeout_s``."""
    max_uploads: int = 4
    """Uploads of one tenant that a gateway takes at once; more are refused with 429."""
    max_all_uploads: int = 32
    """Uploads of all tenants that a gateway takes at once; more are refused with 503. One to a bucket holds up to
    32 MiB in memory."""
    retention_s: float = 30 * 24 * 3600.0
    """Seconds after which files, and batches that have ended, are deleted."""
    max_lines: int = 50_000
    """A batch with more lines is failed."""
    window_s: float = 24 * 3600.0
    """Seconds that a batch has; lines that have no answer then are written into its error file as expired."""
    max_active: int = 20
    """Batches of one tenant that run or wait at once; more are refused with 429."""
    max_running: int = 4
    """Batches that one gateway runs at once; 0 runs none there."""
    lines_in_flight: int = 32
    """Lines of a batch that are asked at once, at most half of what its tenant may ask at once (``concurrent``)."""
    max_attempts: int = 3
    """Times that a line is tried whose answer is an error of the server's."""
    lease_s: float = 10.0
    """Seconds after which another gateway takes over a batch whose gateway has died."""
    poll_s: float = 1.0
    """Seconds between two looks for batches that nobody runs, and at most between two at one that runs here."""
