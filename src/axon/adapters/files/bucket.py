"""Files in a bucket of an S3-compatible store, one object each, through obstore.

A file that fits into one part is one request; a larger one is a multipart upload, which becomes an object when its last
part is there. Endpoint, region and credentials come from AWS_ variables. Parts of an upload that was cut off stay
hidden in the bucket until its own lifecycle rule deletes them.
"""

import asyncio
import contextlib
import os
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from axon.adapters.files.names import checked, is_name, not_there
from axon.errors import AxonError, DependencyDown, Misconfigured, NotFound, ServiceRefuses
from axon.runtime.error_text import first_line
from axon.runtime.tasks import settled

if TYPE_CHECKING:
    from obstore.store import S3Store

SCHEME = "s3://"
PART_BYTES = 8 << 20
PARTS_AT_ONCE = 2
"""An upload holds so many parts in memory, and the one that is being filled."""
_PIECE_BYTES = 1 << 20
_CALL_S = 60.0
"""Deadline of a call, retries included."""
REQUEST_S = 20.0
"""Deadline of one request."""
_NUM_RETRIES = 3
_LISTING_S = 300.0
_PAGE = 1000
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_WORD = re.compile(r"[A-Za-z0-9._-]+")
_STATUS = re.compile(r"status code: (\d{3})")
_REFUSED = (401, 403)
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is kept in a bucket, in the words in which its errors are told."""

    name: str
    """A plural."""
    rights: str
    """What whoever keeps it there has to be allowed."""
    code: str
    """Code of the errors."""


FILES = Content(name="files", rights="list, get, put and delete objects", code="files_unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A bucket, and what the names of the files in it begin with."""

    bucket: str
    prefix: str
    """Ends with a slash, or is empty."""

    @property
    def text(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.prefix}"


def location_of(url: str, whose: str = "batches.files_dir") -> Location:
    """The place that ``s3://bucket/prefix`` names; raises ``Misconfigured``, whose sentence says ``whose`` it is."""
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    is_plain = all(part not in ("", ".", "..") for part in prefix.split("/")) if prefix else True
    if not _WORD.fullmatch(parts.netloc) or parts.query or parts.fragment:  # not repeated: it may have a secret in it
        raise Misconfigured(f"{whose} names no bucket: write s3://bucket/prefix, with no user and no query.")
    if not _BUCKET.fullmatch(parts.netloc):
        raise Misconfigured(
            f"{whose} is wrong: {parts.netloc!r} is no name of a bucket. It has 3 to 63 small letters, digits, hyphens "
            "and dots, and begins and ends with a letter or a digit."
        )
    if not is_plain or not prefix.isprintable():
        raise Misconfigured(f"The prefix in {whose} must have plain names between its slashes.")
    return Location(bucket=parts.netloc, prefix=f"{prefix}/" if prefix else "")


class BucketFiles:
    """One object for each id below the prefix."""

    def __init__(self, location: Location, *, endpoint: str | None = None) -> None:
        """``endpoint`` is for tests; a server's is AWS_ENDPOINT_URL."""
        self._location, self._endpoint = location, endpoint
        self._opened: S3Store | None = None

    async def open(self) -> None:
        """Lists one page, so that a wrong bucket or key fails at the start."""
        store = open_bucket(self._location, FILES, endpoint=self._endpoint)
        async with self._asked(""):
            await asyncio.to_thread(_first_page, store, self._prefix)
        self._opened = store

    async def aclose(self) -> None:
        """Holds no connection that has to be closed."""
        self._opened = None

    async def put(self, file_id: str, pieces: AsyncIterator[bytes]) -> int:
        import obstore

        path, first = self._path(file_id), bytearray()
        async for piece in pieces:
            first += piece
            if len(first) > PART_BYTES:
                return await self._put_in_parts(file_id, bytes(first), pieces)
        async with self._asked(file_id):
            await obstore.put_async(self._store, path, bytes(first), use_multipart=False)
        return len(first)

    async def _put_in_parts(self, file_id: str, first: bytes, rest: AsyncIterator[bytes]) -> int:
        """A multipart upload. It has no deadline of its own: the pieces have theirs, and so has each request."""
        import obstore

        handed, num_bytes = _Handed(), len(first)
        writing = asyncio.ensure_future(
            obstore.put_async(
                self._store, self._path(file_id), handed, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            )
        )
        try:
            await self._give(file_id, handed, first, writing)
            async for piece in rest:
                await self._give(file_id, handed, piece, writing)
                num_bytes += len(piece)
            await self._give(file_id, handed, None, writing)
            with self._translated(file_id):
                await asyncio.shield(writing)
        except BaseException:
            handed.break_off()  # else the library would go on to wait for the next piece
            await settled(writing)  # its requests have deadlines
            raise
        return num_bytes

    async def _give(self, file_id: str, handed: "_Handed", piece: bytes | None, writing: "asyncio.Future[Any]") -> None:
        with self._translated(file_id):
            await handed.give(piece, writing)

    async def read(self, file_id: str) -> AsyncGenerator[bytes, None]:
        import obstore

        path = self._path(file_id)
        async with self._asked(file_id):
            size = (await obstore.head_async(self._store, path))["size"]
        for start in range(0, size, _PIECE_BYTES):
            async with self._asked(file_id):
                end = min(size, start + _PIECE_BYTES)
                piece = bytes(await obstore.get_range_async(self._store, path, start=start, end=end))
            yield piece

    async def delete(self, file_id: str) -> None:
        import obstore

        with contextlib.suppress(NotFound):
            async with self._asked(file_id):
                await obstore.delete_async(self._store, self._path(file_id))

    async def old(self, *, before: float, limit: int, after: str = "") -> Sequence[str]:
        is_left = threading.Event()
        try:
            async with self._asked("", _LISTING_S):
                return await asyncio.to_thread(self._listed, before, limit, after, is_left)
        finally:
            is_left.set()

    def _listed(self, before: float, limit: int, after: str, is_left: threading.Event) -> list[str]:
        """In a thread, as a process that ends soon after an awaited listing was seen to abort (SIGABRT). It ends with
        its page once nobody waits for it."""
        import obstore

        prefix, found = self._location.prefix, list[str]()
        offset = prefix + after if after else None
        for page in obstore.list(self._store, self._prefix, offset=offset, chunk_size=_PAGE):
            if is_left.is_set():
                break
            for each in page:
                name = each["path"].removeprefix(prefix)
                if is_name(name) and name > after and each["last_modified"].timestamp() < before:
                    found.append(name)
                    if len(found) == limit:
                        return found
        return found

    @property
    def _prefix(self) -> str | None:
        return self._location.prefix.rstrip("/") or None

    @property
    def _store(self) -> "S3Store":
        assert self._opened is not None, "open it first"
        return self._opened

    def _path(self, file_id: str) -> str:
        return self._location.prefix + checked(file_id)

    @contextlib.asynccontextmanager
    async def _asked(self, file_id: str, timeout_s: float = _CALL_S) -> AsyncGenerator[None, None]:
        """A call with its deadline."""
        with self._translated(file_id):
            async with asyncio.timeout(timeout_s):
                yield

    @contextlib.contextmanager
    def _translated(self, file_id: str) -> Iterator[None]:
        """Raises ``NotFound`` or ``DependencyDown`` for the library's errors, at the start ``ServiceRefuses`` too."""
        from obstore import exceptions

        try:
            yield
        except TimeoutError as error:
            raise DependencyDown("The files did not answer in time.", code=FILES.code) from error
        except (exceptions.BaseError, OSError) as error:  # a missing object is a FileNotFoundError
            raise self._explained(error, file_id) from error

    def _explained(self, error: Exception, file_id: str) -> AxonError:
        from obstore import exceptions

        if self._opened is None:
            return explained(self._location, FILES, error)
        is_missing = isinstance(error, exceptions.NotFoundError | FileNotFoundError) or _status(error) == 404
        if file_id and is_missing and "NoSuchBucket" not in str(error):
            return not_there(file_id)
        # A client is told neither the bucket nor what to set.
        return DependencyDown("The files cannot be reached.", code=FILES.code)


def open_bucket(
    location: Location, content: Content, *, endpoint: str | None = None, request_s: float = REQUEST_S
) -> "S3Store":
    """The bucket, as AWS_ variables say how to reach it; raises ``Misconfigured``. Asks it nothing yet."""
    try:
        from obstore.store import S3Store
    except ImportError as error:
        raise Misconfigured(
            f"A bucket for {content.name} needs the package obstore: install axon-serving[fetch]."
        ) from error
    from obstore.exceptions import BaseError

    _check_endpoints()
    timeout = timedelta(seconds=request_s)
    try:
        return S3Store(
            location.bucket,
            config={"endpoint": endpoint} if endpoint else None,
            # Whoever names an http:// endpoint means it; without one, AWS's own is https.
            client_options={"allow_http": True, "connect_timeout": timeout, "timeout": timeout},
            retry_config={"max_retries": _NUM_RETRIES, "retry_timeout": 1.5 * timeout},
        )
    except (BaseError, ValueError) as error:
        raise Misconfigured(f"The AWS_ variables cannot be used for {location.text}: {first_line(error)}.") from error


def explained(location: Location, content: Content, error: Exception) -> AxonError:
    """The library's error for whoever runs the server: what is refused or away, and what to set."""
    from obstore import exceptions

    status = _status(error)
    is_missing = isinstance(error, exceptions.NotFoundError | FileNotFoundError) or status == 404
    if is_missing or "NoSuchBucket" in str(error):
        message = f"There is no bucket {location.bucket}: make it, or check AWS_ENDPOINT_URL."
        return ServiceRefuses(message, code=content.code)
    if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError) or status in _REFUSED:
        return ServiceRefuses(
            f"The bucket refuses the {content.name} at {location.text}: the role of this machine or pod, or the key in "
            f"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, must be allowed to {content.rights} there, and AWS_REGION "
            "must be the bucket's.",
            code=content.code,
        )
    message = f"The bucket for the {content.name} at {location.text} cannot be reached: {first_line(error)}."
    return DependencyDown(message, code=content.code)


def _status(error: Exception) -> int:
    return int(found[1]) if (found := _STATUS.search(str(error))) else 0


def _check_endpoints() -> None:
    """Raises ``Misconfigured`` for an endpoint that is none: the library would ask the machine's cloud for keys first,
    and report those as refused."""
    for name in _ENDPOINTS:
        if (value := os.environ.get(name)) and not _is_endpoint(value):
            raise Misconfigured(f"{name} must be a URL such as https://s3.example.com.")


def _is_endpoint(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _first_page(store: "S3Store", prefix: str | None) -> None:
    import obstore

    next(iter(obstore.list(store, prefix, chunk_size=_PAGE)), None)


class _BrokenOff(Exception):
    """The upload is not to become an object."""


class _Handed:
    """Pieces that are handed to the library one by one, which takes them as an iterator."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._is_broken = asyncio.Event()

    async def give(self, piece: bytes | None, writing: "asyncio.Future[Any]") -> None:
        """Returns when there is room for the next piece; raises what the writing has failed with. None says that no
        more will come."""
        if writing.done():
            writing.result()
        if piece == b"":
            return
        giving = asyncio.ensure_future(self._pieces.put(piece))
        try:
            await asyncio.wait([giving, writing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            giving.cancel()
        if writing.done():
            writing.result()

    def break_off(self) -> None:
        """The library's next look fails."""
        self._is_broken.set()

    def __aiter__(self) -> "_Handed":
        return self

    async def __anext__(self) -> bytes:
        taking, breaking = asyncio.ensure_future(self._pieces.get()), asyncio.ensure_future(self._is_broken.wait())
        try:
            await asyncio.wait([taking, breaking], return_when=asyncio.FIRST_COMPLETED)
            if self._is_broken.is_set():
                raise _BrokenOff
            piece = taking.result()
        finally:
            taking.cancel()
            breaking.cancel()
        if piece is None:
            raise StopAsyncIteration
        return piece
