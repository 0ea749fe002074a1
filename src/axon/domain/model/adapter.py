"""The LoRA adapter that a job runs with, and how a session's pin names it beside a version. Knows no files."""

from dataclasses import dataclass

_MARK_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAdapter:
    """An adapter as a job names it: enough for any worker to fetch the same bytes."""

    name: str
    """Its name in the registry, ``model:adapter``."""
    digest: str
    """SHA-256 over the names, sizes and digests of its files."""
    source: str
    """Where its files come from: a path, ``hf://org/name@revision`` or ``s3://bucket/prefix``."""
    source_revision: str = ""


def mark_of(digest: str) -> str:
    """The first digits of an adapter's digest, which pins and stored turns keep."""
    return digest[:_MARK_DIGITS]


def adapted(version: str, mark: str) -> str:
    """What a pin names: the version's id, and behind a colon the adapter's mark where there is one."""
    return f"{version}:{mark}" if mark else version


def split_adapted(pinned: str) -> tuple[str, str]:
    """The version's id and the adapter's mark in what a pin names."""
    version, _, mark = pinned.partition(":")
    return version, mark
