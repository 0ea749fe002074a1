"""Settings of a process that serves a registered version, and whether any process could serve it. Reads no file."""

from collections.abc import Iterable
from dataclasses import replace

from axon.domain.registry.version import Version
from axon.errors import InvalidInput, Misconfigured
from axon.settings import Settings, with_engine
from axon.weights.names import check_digest
from axon.weights.source import parse_source

_OWN = ("kind", "dtype", "max_model_len")
"""Engine settings for which a version has fields of their own."""
MORE = (
    "adapter_memory_bytes",
    "adapter_slots",
    "block_size",
    "call_format",
    "device",
    "draft_tokens",
    "echo_classes",
    "echo_dimensions",
    "echo_fails",
    "echo_shift",
    "echo_step_s",
    "embedding_batch",
    "embedding_enough_tokens",
    "embedding_gather_ms",
    "gpu_memory_fraction",
    "itl_slo_ms",
    "kv_dtype",
    "kv_memory_bytes",
    "max_batch_tokens",
    "max_prefill_tokens",
    "max_sequences",
    "max_slowdown",
    "speculate",
    "tensor_parallel",
    "threads",
)
"""Other engine settings that a version may have (``settings.more``). The rest is the machine's or the operator's: where
ranks of other hosts join, how long they are waited for, how engines share its cores, in which order tenants are served,
files that it has, and where vLLM is and what it is told beside."""


def settings_of(settings: Settings, version: Version, deployment: str = "") -> Settings:
    """The settings of a process that reads a version's files: those of the process, but for the version's own."""
    own = version.settings
    _check_more(name for name, _ in own.more)
    engine = {"kind": own.kind, "dtype": own.dtype if own.dtype != "auto" else ""}
    engine["max_model_len"] = str(own.max_model_len or "")
    given = [(name, text) for name, text in engine.items() if text] + list(own.more)
    return replace(
        with_engine(settings, given, version.id),
        models="",
        model=version.source,
        model_name=deployment or version.model,
    )


def check_servable(version: Version) -> None:
    """Raises ``InvalidInput`` for a source, a digest or engine settings that every worker would refuse: a server that
    is to run such a version cannot load it."""
    check_digest(version.digest)
    if version.settings.kind != "echo":
        parse_source(version.source)
    try:
        _check_more(name for name, _ in version.settings.more)
    except Misconfigured as error:
        raise InvalidInput(error.message, param="settings.more") from error
    try:
        settings_of(Settings(), version)
    except Misconfigured as error:
        raise InvalidInput(error.message, param="settings") from error


def _check_more(names: Iterable[str]) -> None:
    """Raises ``Misconfigured`` for a setting that no version may have."""
    for name in names:
        if name in _OWN:
            raise Misconfigured(f"'settings.more' has '{name}', which has a field of its own: 'settings.{name}'.")
        if name not in MORE:
            raise Misconfigured(
                f"'settings.more' has '{name}', which is no engine setting that a version may have. It may have: "
                f"{', '.join(MORE)}."
            )
