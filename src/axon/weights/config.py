"""The settings' section on a model's files: how they are fetched, and how much of the disk they may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsConfig:
    """Fetching and keeping models."""

    limit_gb: float = 0.0
    """Disk space in GB (10^9 bytes) for fetched models in ``models_dir``; 0 is no limit. When a fetch would exceed it,
    the models that were opened least recently are removed, but never one that a process has open."""
    parallel: int = 4
    """Files that are fetched, or checked, at the same time."""
    tries: int = 5
    """Attempts in a row without a new byte after which a fetch fails; also downloads of a file whose checksum is
    wrong."""
    retry_s: float = 0.5
    """Seconds before the second attempt; each further one waits twice as long, up to 30 s, with jitter."""
    timeout_s: float = 30.0
    """Seconds to wait for a connection, and for the next bytes of a file."""
    recheck_s: float = 604800.0
    """Seconds for which the last whole check of a model's digests is trusted while its files look unchanged; it is also
    done again after every reboot."""
