"""Copies an archive into a bucket of an S3-compatible store. Does not look into it."""

import os
from pathlib import Path
from typing import BinaryIO

from axon.adapters.files.bucket import (
    PART_BYTES,
    PARTS_AT_ONCE,
    REQUEST_S,
    SCHEME,
    Content,
    explained,
    location_of,
    open_bucket,
)
from axon.errors import Misconfigured

BACKUPS = Content(name="backups", rights="put objects and abort uploads", code="dependency_unavailable")
_MOST_PARTS = 9_000
"""Parts of an upload; S3 takes 10,000."""
_WHOSE = "The URL of the bucket"


def upload(path: Path, url: str, *, endpoint: str | None = None) -> str:
    """Puts the file below ``s3://bucket/prefix`` under its own name, and returns where it is then. A larger file is an
    object when its last part is there, and none before. ``endpoint`` is for tests; else it is AWS_ENDPOINT_URL."""
    with _opened(path) as file:
        if not url.startswith(SCHEME):
            raise Misconfigured(f"{_WHOSE} does not begin with {SCHEME}: write s3://bucket/prefix.")
        location, each = location_of(url, _WHOSE), part_bytes(os.fstat(file.fileno()).st_size)
        # A longer part has as much longer to arrive.
        store = open_bucket(location, BACKUPS, endpoint=endpoint, request_s=REQUEST_S * each / PART_BYTES)
        import obstore
        from obstore.exceptions import BaseError

        try:
            obstore.put(store, location.prefix + path.name, file, chunk_size=each, max_concurrency=PARTS_AT_ONCE)
        except (BaseError, OSError) as error:
            raise explained(location, BACKUPS, error) from error
    return location.text + path.name


def part_bytes(num_bytes: int) -> int:
    """Bytes of each part of an upload of so many: never more parts than S3 takes."""
    return max(PART_BYTES, -(-num_bytes // _MOST_PARTS))


def _opened(path: Path) -> BinaryIO:
    """The local file, opened before the bucket is asked anything: what is wrong with it is not the bucket's fault."""
    try:
        if not path.is_file():
            raise Misconfigured(f"{path} is no file. Name a backup's file.")
        return path.open("rb")
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}. Name a backup's file.") from error
