"""Checks before loading that the models of one server fit into the machine's memory together. Loads nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from axon.bootstrap.models.model import Model
from axon.engine.config import EngineConfig, for_device
from axon.engine.load.architecture import read_architecture
from axon.engine.load.tensor_files import find_tensors
from axon.engine.load.vector_model import read_vector_model, weight_bytes
from axon.errors import Misconfigured
from axon.settings import Settings

_BYTES_PER_PARAMETER = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.25, "fp8": 1.25}
"""With ``int8`` and ``fp8`` the embedding stays in a wider type; 1.25 is above what the default model takes."""
_PROCESS_BYTES = 400 << 20
"""An engine's process without weights and KV blocks: Python, torch and its buffers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Memory that one model needs."""

    name: str
    weights: int
    kv: int

    @property
    def total(self) -> int:
        return self.weights + self.kv + _PROCESS_BYTES


def need_of(name: str, model: Model, config: EngineConfig) -> Need:
    """Estimates what a model takes on a CPU, with its draft model; an engine without a model takes next to nothing."""
    if model.folder is None:
        return Need(name=name, weights=0, kv=0)
    if model.embeds is not None:
        return Need(name=name, weights=weight_bytes(read_vector_model(model.folder), config.dtype), kv=0)
    config = for_device(config, "cpu")
    if config.kind == "vllm":
        return Need(name=name, weights=_file_bytes(model.folder), kv=config.kv_memory_bytes)
    dtype = "int8" if config.dtype == "auto" else config.dtype
    folders = [model.folder, *([model.draft] if model.draft else [])]
    parameters = sum(read_architecture(folder).num_parameters() for folder in folders)
    return Need(name=name, weights=int(parameters * _BYTES_PER_PARAMETER[dtype]), kv=config.kv_memory_bytes)


def _file_bytes(folder: Path) -> int:
    """The size of the weights' files, for a model whose architecture may be known to vLLM alone."""
    return sum(path.stat().st_size for path in {place.path for place in find_tensors(folder).values()})


def require_memory(settings: Sequence[Settings], models: Sequence[Model], *, available: int | None = None) -> None:
    """Raises ``Misconfigured`` if several models do not fit into ``available`` bytes together; without a number, into
    the memory that is available now. A GPU's engine checks its own memory when it loads."""
    pairs = [(each, model) for each, model in zip(settings, models, strict=True) if each.engine.device != "cuda"]
    if len(pairs) < 2:
        return
    needs = [need_of(each.model_name, model, each.engine) for each, model in pairs]
    room = available_bytes() if available is None else available
    if sum(need.total for need in needs) > room:
        raise Misconfigured(_sentence(needs, room))


def require_room(settings: Settings, model: Model, *, available: int | None = None) -> None:
    """Raises ``Misconfigured`` if one more model does not fit into ``available`` bytes; without a number, into the
    memory that is available now, beside what runs already."""
    if settings.engine.device == "cuda":
        return
    need, room = need_of(settings.model_name, model, settings.engine), available_bytes()
    room = room if available is None else available
    if need.total > room:
        raise Misconfigured(
            f"{need.name} does not fit into memory beside what runs: it takes {_gigabytes(need.total)} (weights "
            f"{_gigabytes(need.weights)}, KV blocks {_gigabytes(need.kv)}), and {_gigabytes(room)} are available. Stop "
            "something else, or start again with a smaller engine.kv_memory_bytes."
        )


def available_bytes() -> int:
    """Memory that can still be taken here: the machine's, or what is left of this process's limit."""
    free = [_meminfo("MemAvailable")]
    group = Path("/sys/fs/cgroup")
    limit, used = _number(group / "memory.max"), _number(group / "memory.current")
    if limit is not None and used is not None:
        free.append(limit - used)
    return min(free)


def _sentence(needs: Sequence[Need], room: int) -> str:
    each = "; ".join(
        f"{need.name} {_gigabytes(need.total)} (weights {_gigabytes(need.weights)}, KV blocks {_gigabytes(need.kv)})"
        for need in needs
    )
    return (
        f"The models do not fit into memory together: they take {_gigabytes(sum(need.total for need in needs))}, and "
        f"{_gigabytes(room)} are available. {each}. Serve fewer, or give one less: NAME=SOURCE;kv_memory_bytes=…"
    )


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB"


def _meminfo(name: str) -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
