"""Copies an archive into a bucket of an S3-compatible store. Does not look into it."""

from pathlib import Path

from axon.adapters.files.bucket import SCHEME, explained, location_of, open_bucket
from axon.errors import Misconfigured

_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 2
"""An upload holds so many parts in memory."""


def upload(path: Path, url: str, *, endpoint: str | None = None) -> str:
    """Puts the file below ``s3://bucket/prefix`` under its own name, and returns where it is then. A larger file is an
    object when its last part is there, and none before. ``endpoint`` is for tests; else it is AWS_ENDPOINT_URL."""
    if not path.is_file():
        raise Misconfigured(f"{path} is no file.")
    if not url.startswith(SCHEME):
        raise Misconfigured("The place of a backup is no bucket: write s3://bucket/prefix.")
    location = location_of(url, "The place of a backup")
    store = open_bucket(location, endpoint=endpoint)
    import obstore
    from obstore.exceptions import BaseError

    try:
        obstore.put(store, location.prefix + path.name, path, chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE)
    except (BaseError, OSError) as error:
        raise explained(location, error) from error
    return location.text + path.name
