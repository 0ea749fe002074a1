"""A LoRA adapter of the registry: a name beside a model, and the files that it has meant. Knows no engine."""

from dataclasses import dataclass, replace

from axon.domain.model.adapter import JobAdapter, mark_of

_MAX_BEFORE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterFiles:
    """One set of files of an adapter."""

    digest: str
    """SHA-256 over their names, sizes and digests."""
    source: str
    """Where they come from: a path, ``hf://org/name@revision`` or ``s3://bucket/prefix``."""
    source_revision: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A registered adapter. Every deployment of its model serves it, as ``deployment:adapter``."""

    model: str
    """The registered model's name, or that of a model which a server's settings name."""
    label: str
    """Its name behind the colon."""
    tenant: str = ""
    """The tenant that it was added for; to all others it does not exist. Empty for everybody."""
    files: tuple[AdapterFiles, ...]
    """Its files, the latest first. Sessions that began with earlier ones keep them."""
    created: float
    revision: int = 1

    @property
    def id(self) -> str:
        """Its id, unique over all models."""
        return adapter_id(self.model, self.label)

    @property
    def digest(self) -> str:
        """The digest of the files with which sessions begin now."""
        return self.files[0].digest

    def is_for(self, tenant: str) -> bool:
        """Whether a tenant may know of it."""
        return self.tenant in ("", tenant)

    def with_files(self, files: AdapterFiles) -> "Adapter":
        """The adapter with other files; those before stay for the sessions that have them."""
        before = tuple(each for each in self.files if each.digest != files.digest)
        return self if files.digest == self.digest else replace(self, files=(files, *before[:_MAX_BEFORE]))

    def for_job(self, mark: str) -> JobAdapter:
        """The files with this mark as a job names them; the latest ones if they are not known any more."""
        found = next((each for each in self.files if mark_of(each.digest) == mark), self.files[0])
        return JobAdapter(name=self.id, digest=found.digest, source=found.source, source_revision=found.source_revision)


def adapter_id(model: str, label: str) -> str:
    """The id of a model's adapter."""
    return f"{model}:{label}"
