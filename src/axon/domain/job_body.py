"""Reads a job's body as a worker must: what it can run, what only a later release can, and what nobody can.

A fleet may run two releases at once. A worker that would run a job which it does not fully understand would answer half
of what was asked.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import msgspec

from axon.domain.job import Job
from axon.domain.wire import decode

VERSION = 1
"""The format of jobs that this release writes. Fields that older releases may ignore do not raise it."""
GRAMMAR, TOOLS, EMBEDDINGS, CLASSES = "grammar", "tools", "embeddings", "classes"
PROMPT_RANKS, ADAPTERS = "prompt_ranks", "adapters"
FEATURES: frozenset[str] = frozenset({GRAMMAR, TOOLS, EMBEDDINGS, CLASSES, PROMPT_RANKS, ADAPTERS})
"""Features beyond those of every release that this one supports: a job names those that it needs in ``needs``."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """A job that needs a later release."""

    job_id: str
    why: str


def read_job(body: bytes, features: AbstractSet[str] = FEATURES) -> Job | Beyond | None:
    """The job in these bytes; None when they hold none that any release could read."""
    try:
        job = decode(Job, body)
    except ValueError:
        return _beyond(body)
    if job.v > VERSION:
        return Beyond(job.id, f"written as v {job.v}")
    if missing := [need for need in job.needs if need not in features]:
        return Beyond(job.id, f"needs {', '.join(missing)}")
    return job


def _beyond(body: bytes) -> Beyond | None:
    """A body of a later version, which need not have our fields."""
    try:
        raw = msgspec.msgpack.decode(body)
    except ValueError:
        return None
    if not isinstance(raw, dict):
        return None
    job_id, version = raw.get("id"), raw.get("v")
    is_later = isinstance(version, int) and version > VERSION
    return Beyond(job_id, f"written as v {version}") if is_later and isinstance(job_id, str) and job_id else None
