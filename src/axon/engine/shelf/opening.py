"""Opens the shelf that the settings ask for: its slots, its files and what is known of them. Knows no device."""

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from axon.engine.config import MOST_COPY_AGE_S, EngineConfig
from axon.engine.runner import Mover
from axon.engine.schedule.shelf import Shelf
from axon.engine.shelf.folder import FolderFiles
from axon.engine.shelf.home import sweep, take_home
from axon.engine.shelf.slab import Slab
from axon.errors import Misconfigured

logger = logging.getLogger(__name__)

_STAGING_BYTES = 64 << 20
"""Memory through which blocks pass to and from files where the settings give the shelf no more."""
_FEWEST_SLOTS = 8
_STEP_BYTES = 16 << 20
"""Bytes that a step may load, and save, beside what it computes; but as many blocks as it may fill in any case."""


def open_shelf(
    config: EngineConfig,
    *,
    block_bytes: int,
    identity: Callable[[], str],
    open_mover: Callable[[int], Mover] | None,
    counted_bytes: int = 0,
) -> tuple[Shelf | None, Mover | None]:
    """The shelf and what copies its blocks, or neither where the settings ask for none; raises ``Misconfigured``.

    ``identity`` names what blocks are computed by and of: files of another one are not read. ``counted_bytes`` is
    what a block counts for in the settings, where that is not ``block_bytes``.
    """
    counted_bytes = counted_bytes or block_bytes
    if config.kv_folder and config.tensor_parallel > 1:
        raise Misconfigured(
            "engine.kv_folder works with one rank: remove it, or engine.tensor_parallel. engine.kv_host_bytes works "
            "with several"
        )
    mover = open_slots(config, block_bytes=counted_bytes, open_mover=open_mover)
    if mover is None:
        return None, None
    num_slots = len(mover.memory) // block_bytes
    num_places = config.kv_folder_bytes // counted_bytes if config.kv_folder else 0
    if config.kv_folder and not num_places:
        raise Misconfigured(f"engine.kv_folder_bytes = {config.kv_folder_bytes} holds not even one block")
    files = _open_files(config, block_bytes, num_places, identity(), mover.memory) if config.kv_folder else None
    shelf = Shelf(
        num_slots,
        block_size=config.block_size,
        block_bytes=block_bytes,
        max_copies=max(_STEP_BYTES // counted_bytes, config.max_batch_tokens // config.block_size, 1),
        files=files,
        max_age_s=_max_age_s(config),
    )
    return shelf, mover


def open_slots(config: EngineConfig, *, block_bytes: int, open_mover: Callable[[int], Mover] | None) -> Mover | None:
    """The slots in this rank's memory, as many in every rank; None where the settings ask for none."""
    if open_mover is None or not (config.kv_host_bytes or config.kv_folder):
        return None
    num_slots = config.kv_host_bytes // block_bytes
    if config.kv_folder:
        num_slots = max(num_slots, _STAGING_BYTES // block_bytes, _FEWEST_SLOTS)
    if not num_slots:
        raise Misconfigured(f"engine.kv_host_bytes = {config.kv_host_bytes} holds not even one block")
    return open_mover(num_slots)


def _max_age_s(config: EngineConfig) -> float:
    return min(config.kv_folder_max_age_s or MOST_COPY_AGE_S, MOST_COPY_AGE_S)


def _open_files(
    config: EngineConfig, block_bytes: int, num_places: int, identity: str, memory: memoryview
) -> FolderFiles:
    fingerprint = hashlib.sha256(identity.encode()).digest()
    folder = Path(config.kv_folder).expanduser()
    try:
        home = take_home(folder, fingerprint.hex()[:16])
        sweep(folder, max_bytes=config.kv_folder_bytes, max_age_s=_max_age_s(config))
        slab = Slab(home.path, fingerprint=fingerprint, block_bytes=block_bytes, num_places=num_places)
    except OSError as error:
        raise Misconfigured(f"engine.kv_folder = {config.kv_folder} cannot be used: {error}") from error
    return FolderFiles(home, slab, memory)


def identity_of(model_dir: Path, kernel: str, weight_files: list[Path]) -> str:
    """Names the model and the arithmetic of its blocks: config, weight files with sizes and times, kernel.

    The weights are not read. A file that was replaced by one of the same size has another time.
    """
    mark = hashlib.sha256((model_dir / "config.json").read_bytes())
    for path in sorted(weight_files):
        status = path.stat()
        mark.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"{kernel} {mark.hexdigest()}"
