"""A version of a model: immutable weights, tokenizer, template and engine settings. Knows no deployment."""

from dataclasses import dataclass, field

from axon.domain.model.embeds import Embeds


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Settings of the engine that belong to a version, because another value gives other tokens."""

    kind: str = ""
    """The engine: empty for the server's own choice, ``axon``, ``vllm``, or ``echo`` for the one that repeats its
    prompt."""
    dtype: str = "auto"
    max_model_len: int = 0
    """Context length in tokens; 0 for the model's own."""
    draft: str = ""
    """Id of the version that drafts for this one; empty for none."""
    more: tuple[tuple[str, str], ...] = ()
    """Other settings of the engine by name, each with its value as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Sampling defaults of a version, for requests that set none."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A registered version. It holds all that a gateway needs to render a prompt before any worker runs."""

    model: str
    label: str
    """Its name among the versions of its model, such as ``v2``."""
    source: str
    """Where its files come from: a path, ``hf://org/name@revision`` or ``s3://bucket/prefix``."""
    source_revision: str = ""
    """The revision that the source had when it was registered, where it has one."""
    digest: str
    """SHA-256 over the names, sizes and digests of all its files."""
    text: str
    """Fingerprint of tokenizer and template."""
    max_model_len: int
    """Context length in tokens that it is served with."""
    settings: EngineSettings = field(default_factory=EngineSettings)
    advice: Advice = field(default_factory=Advice)
    reasons: bool = False
    """Whether the model writes its reasoning before the answer."""
    embeds: Embeds | None = None
    """Set for an embedding model, which gives vectors and no text."""
    fingerprints: tuple[str, ...] = ()
    """Marks under which releases without a registry have served it."""
    kernel: str = ""
    """The kernel that computes it, recorded by the first worker that was ready; another kernel is another version."""
    created: float
    revision: int = 1

    @property
    def id(self) -> str:
        """Its id, unique over all models: jobs, pins and lanes name it by this."""
        return version_id(self.model, self.label)


def version_id(model: str, label: str) -> str:
    """The id of a model's version."""
    return f"{model}@{label}"
