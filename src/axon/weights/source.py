"""Where a model's files come from: the text SOURCE as a location, and what every source can do. Opens nothing."""

import os
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from axon.errors import InvalidInput

FORMS = "a folder, a .gguf file, hf://org/name@revision or s3://bucket/prefix"
MAX_FILES = 10_000
"""Largest number of files of a source; a model has a few hundred at most."""
_HUB = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)"
    r"(@(?P<revision>refs/(pr|convert)/[\w.-]+|[\w.-]+))?"
    r"(/(?P<file>[^@?#]+))?",
    re.ASCII,
)
_BUCKET = re.compile(r"(?P<bucket>[A-Za-z0-9][A-Za-z0-9._-]{1,62})(/(?P<prefix>[^?#]*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPath:
    """A folder, or a .gguf file, of this machine."""

    path: Path

    @property
    def text(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRepo:
    """A repository of a hub that speaks Hugging Face's API."""

    repo: str
    revision: str = "main"
    """A branch, a tag or a commit."""
    file: str = ""
    """A .gguf file of a repository that has several; empty for the whole model."""

    @property
    def text(self) -> str:
        return f"hf://{self.repo}@{self.revision}" + (f"/{self.file}" if self.file else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Objects below a prefix of an S3-compatible store."""

    bucket: str
    prefix: str = ""
    file: str = ""
    """A .gguf object below the prefix; empty for the whole model."""

    @property
    def text(self) -> str:
        return "/".join(part for part in (f"s3://{self.bucket}", self.prefix, self.file) if part)


Location = LocalPath | HubRepo | Bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A checksum that a source states for a file."""

    kind: Literal["sha256", "git", "md5"]
    """``git`` is the SHA-1 of a git blob; ``md5`` an S3 ETag that looks like one (in an encrypted bucket it is not)."""
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFile:
    """A file as its source states it."""

    name: str
    size: int
    tag: str = ""
    """Changes with the content, where the source states such a thing (ETag, blob id, modification time)."""
    check: Check | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All files of a source, and the revision that they belong to."""

    files: tuple[StatedFile, ...]
    revision: str = ""
    """The commit of a hub's repository; empty where the source has no revisions."""


class Source(Protocol):
    """A place that files are fetched from. Raises ``FetchFailed``, and ``FetchInterrupted`` when a retry may help."""

    @property
    def location(self) -> Location: ...

    async def listing(self) -> Listing:
        """The files, at one revision."""
        ...

    def read(self, file: StatedFile, offset: int) -> AsyncGenerator[bytes, None]:
        """The bytes of a listed file from ``offset`` on. Close it to stop early."""
        ...

    async def aclose(self) -> None: ...


def parse_source(text: str) -> Location:
    """The location that SOURCE means; raises ``InvalidInput``. A path need not exist: another machine may have it."""
    text = text.strip()
    if not text or any(ord(char) < 32 for char in text):
        raise InvalidInput(f"{text!r} is no source: give {FORMS}.", param="source")
    scheme, found, rest = text.partition("://")
    if not found:
        return LocalPath(path=Path(os.path.expanduser(text)).absolute())
    match scheme:
        case "hf":
            return _parse_hub(text, rest)
        case "s3":
            return _parse_bucket(text, rest)
    raise InvalidInput(f"{scheme}:// is no source that Axon knows: give {FORMS}.", param="source")


def _parse_hub(text: str, rest: str) -> HubRepo:
    match = _HUB.fullmatch(rest.rstrip("/"))
    if match is None or ".." in rest:
        raise InvalidInput(f"{text!r} is no repository: write hf://org/name@revision.", param="source")
    file = match["file"] or ""
    if file and not file.endswith(".gguf"):
        raise InvalidInput(
            f"{text!r} names the file {file}: only a .gguf file can be named by itself. Leave it out for the whole "
            "model.",
            param="source",
        )
    return HubRepo(repo=match["repo"], revision=match["revision"] or "main", file=file)


def _parse_bucket(text: str, rest: str) -> Bucket:
    match = _BUCKET.fullmatch(rest)
    prefix = (match["prefix"] or "").strip("/") if match else ""
    if match is None or any(part in ("", ".", "..") for part in prefix.split("/") if prefix) or "\\" in prefix:
        raise InvalidInput(
            f"{text!r} is no place in a bucket: write s3://bucket/prefix. Endpoint and credentials come from "
            "AWS_ENDPOINT_URL and the other AWS_ variables.",
            param="source",
        )
    if prefix.endswith(".gguf"):
        folder, _, file = prefix.rpartition("/")
        return Bucket(bucket=match["bucket"], prefix=folder, file=file)
    return Bucket(bucket=match["bucket"], prefix=prefix)


def too_many(where: str) -> InvalidInput:
    """The error for a source that is no model's alone."""
    return InvalidInput(f"{where} has more than {MAX_FILES:,} files: name the folder of one model.")


def file_of(location: Location) -> str:
    """The .gguf file that the location names; empty for a whole folder."""
    match location:
        case LocalPath(path=path):
            return path.name if path.suffix == ".gguf" else ""
        case HubRepo(file=file) | Bucket(file=file):
            return file
