"""Objects of an S3-compatible store, read with obstore. Endpoint, region and credentials come from AWS_ variables."""

import asyncio
import re
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import TYPE_CHECKING

from axon.errors import AxonError, FetchFailed, FetchInterrupted, Misconfigured
from axon.runtime.error_text import first_line
from axon.weights.source import MAX_FILES, Bucket, Check, Listing, StatedFile, too_many

if TYPE_CHECKING:
    from obstore.store import S3Store

_CHUNK_BYTES = 64 << 10
"""Small, so that a slow connection brings a chunk within the time after which it counts as broken."""
_LISTING_S = 120.0
_STATUS = re.compile(r"status code: (\d{3})")
_MD5 = re.compile(r"[0-9a-f]{32}")


class BucketSource:
    """Lists below the prefix and reads objects by range, each only as long as it has the listed ETag."""

    def __init__(self, location: Bucket, *, endpoint: str | None = None, timeout_s: float = 30.0) -> None:
        self._location = location
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._opened: S3Store | None = None

    @property
    def location(self) -> Bucket:
        return self._location

    async def listing(self) -> Listing:
        store, prefix = self._store(), self._location.prefix
        import obstore

        def listed() -> list[StatedFile]:
            # In a thread: a process ending soon after an awaited listing was seen to abort (SIGABRT, cause not known)
            found: list[StatedFile] = []
            for batch in obstore.list(store, prefix or None, chunk_size=1000):
                for each in batch:
                    name = each["path"].removeprefix(prefix).removeprefix("/")
                    if name:  # the prefix itself is an object where a console has made it as a folder
                        found.append(_stated(name, each["size"], each["e_tag"] or ""))
                if len(found) > MAX_FILES:
                    raise too_many(self._location.text)
            return found

        try:
            async with asyncio.timeout(_LISTING_S):
                files = await asyncio.to_thread(listed)
        except TimeoutError:
            raise FetchInterrupted(
                f"The listing of {self._location.text} did not come within {_LISTING_S:g} s."
            ) from None
        except (obstore.exceptions.BaseError, OSError) as error:
            raise self._explained(error) from error
        if not files:
            raise FetchFailed(
                f"There is nothing below {self._location.text}: check the bucket, the prefix and AWS_ENDPOINT_URL.",
                code="source_not_found",
            )
        return Listing(files=tuple(files))

    async def read(self, file: StatedFile, offset: int) -> AsyncGenerator[bytes, None]:
        store = self._store()
        import obstore

        path = "/".join(part for part in (self._location.prefix, file.name) if part)
        try:
            options: obstore.GetOptions = {"range": {"offset": offset}} if offset else {}
            if file.tag:
                options["if_match"] = file.tag
            answer = await obstore.get_async(store, path, options=options)
            async for chunk in answer.stream(min_chunk_size=_CHUNK_BYTES):
                yield bytes(chunk)
        except (obstore.exceptions.BaseError, OSError) as error:  # a missing object is a FileNotFoundError
            raise self._explained(error) from error

    async def aclose(self) -> None:
        self._opened = None

    def _store(self) -> "S3Store":
        try:
            from obstore.store import S3Store
        except ImportError as error:
            raise Misconfigured("A source s3://… needs the package obstore: install axon-serving[fetch].") from error
        if self._opened is None:
            timeout = timedelta(seconds=self._timeout_s)
            self._opened = S3Store(
                self._location.bucket,
                config={"endpoint": self._endpoint} if self._endpoint else None,
                # Whoever names an http:// endpoint means it; without one, AWS's own is https.
                client_options={"allow_http": True, "connect_timeout": timeout, "read_timeout": timeout},
                retry_config={"max_retries": 1, "retry_timeout": timeout},
            )
        return self._opened

    def _explained(self, error: Exception) -> AxonError:
        from obstore import exceptions

        name, said = self._location.text, first_line(error)
        # A refused listing comes as an error without a class of its own.
        status = int(found[1]) if (found := _STATUS.search(said)) else 0
        if isinstance(error, exceptions.NotFoundError | FileNotFoundError) or status == 404:
            return FetchFailed(
                f"There is no {name}: check the bucket, the prefix and AWS_ENDPOINT_URL.", code="source_not_found"
            )
        if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError) or status in (
            401,
            403,
        ):
            return FetchFailed(
                f"You may not read {name}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that may list and "
                "get there (AWS_SKIP_SIGNATURE=true for a public bucket), and AWS_REGION to the bucket's.",
                code="source_forbidden",
            )
        if isinstance(error, exceptions.PreconditionError) or status == 412:
            return FetchFailed(
                f"{name} has changed while it was fetched. Start again to fetch what is there now.",
                code="source_changed",
            )
        if "credential" in said.lower() or "169.254.169.254" in said:
            return FetchFailed(
                f"There are no credentials for {name}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                f"AWS_SKIP_SIGNATURE=true for a public bucket. ({said})",
                code="source_forbidden",
            )
        return FetchInterrupted(f"{name} cannot be read: {said}. Check the network and AWS_ENDPOINT_URL.")


def _stated(name: str, size: int, tag: str) -> StatedFile:
    plain = tag.strip('"')
    check = Check(kind="md5", value=plain) if _MD5.fullmatch(plain) else None
    return StatedFile(name=name, size=size, tag=tag, check=check)
