"""Settings of a process that serves a registered version, and whether any process could serve it. Reads no file."""

from dataclasses import replace

from axon.domain.registry.version import Version
from axon.errors import InvalidInput, Misconfigured
from axon.settings import Settings, with_engine
from axon.weights.names import check_digest
from axon.weights.source import parse_source


def settings_of(settings: Settings, version: Version, deployment: str = "") -> Settings:
    """The settings of a process that reads a version's files: those of the process, but for the version's own."""
    own = version.settings
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
    is to run such a version does not start."""
    check_digest(version.digest)
    if version.settings.kind != "echo":
        parse_source(version.source)
    try:
        settings_of(Settings(), version)
    except Misconfigured as error:
        raise InvalidInput(error.message, param="settings") from error
