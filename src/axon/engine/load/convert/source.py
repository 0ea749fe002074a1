"""A GGUF file, or all parts of a split one: its metadata and its tensors, still quantised. Converts nothing."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gguf import GGUFReader

from axon.errors import Misconfigured

_PART = re.compile(r"(.*)-\d{5}-of-(\d{5})\.gguf\Z")
# What the reader raises for a damaged file depends on where the damage is.
_DAMAGED = (ValueError, KeyError, IndexError, OverflowError, MemoryError, TypeError)


@dataclass(frozen=True, slots=True)
class Source:
    """The metadata and the memory-mapped tensors of a file."""

    metadata: dict[str, Any]
    tensors: list[Any]

    @property
    def architecture(self) -> str:
        """The name the metadata's keys start with."""
        return str(self.metadata.get("general.architecture"))

    def shape(self, key: str, *default: Any) -> Any:
        """A metadata value under the architecture's prefix; raises Misconfigured if missing and without a default."""
        name = f"{self.architecture}.{key}"
        if name not in self.metadata and not default:
            raise Misconfigured(f"the GGUF file does not say {name}")
        return self.metadata.get(name, *default)


def parts_of(path: Path) -> list[Path]:
    """All files of a model, of which ``path`` is one; raises Misconfigured if one is missing."""
    match = _PART.match(path.name)
    if match is None:
        return [path]
    parts = [path.with_name(f"{match[1]}-{number:05}-of-{match[2]}.gguf") for number in range(1, int(match[2]) + 1)]
    for part in parts:
        if not part.is_file():
            raise Misconfigured(f"{path.name} is one part of {len(parts)}, and {part.name} is missing beside it")
    return parts


def open_source(path: Path) -> Source:
    """Reads the metadata and maps the tensors; raises Misconfigured."""
    readers = [_open(part) for part in parts_of(path)]
    metadata = readers[0][0]
    num_parts = metadata.get("split.count", 1)
    if num_parts > len(readers):
        raise Misconfigured(
            f"{path.name} is one of {num_parts} parts, but its name does not end as 00001-of-00003 does"
        )
    return Source(metadata, [tensor for _, tensors in readers for tensor in tensors])


def _open(path: Path) -> tuple[dict[str, Any], list[Any]]:
    try:
        reader = GGUFReader(path)
        return {name: field.contents() for name, field in reader.fields.items()}, list(reader.tensors)
    except _DAMAGED as error:
        raise Misconfigured(f"{path} cannot be read as GGUF; it may be cut short: {error}") from error
