"""A repository of a hub with Hugging Face's API, read over HTTP at one commit. HF_ENDPOINT and HF_TOKEN hold."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx
import msgspec

from axon.errors import AxonError, FetchFailed, FetchInterrupted, Misconfigured
from axon.weights.source import Check, HubRepo, Listing, StatedFile

_CHUNK_BYTES = 64 << 10
"""Small, so that a slow connection brings a chunk within the time after which it counts as broken."""
_MAX_LISTING_BYTES = 32 << 20
_LISTING_S = 120.0
_COMMIT = re.compile(r"[\w.-]{1,128}", re.ASCII)


class _Lfs(msgspec.Struct):
    sha256: str = ""


class _File(msgspec.Struct, rename="camel"):
    rfilename: str
    size: int | None = None
    blob_id: str | None = None
    lfs: _Lfs | None = None


class _Info(msgspec.Struct):
    """What a hub says of a repository, as far as it is read."""

    sha: str | None = None
    siblings: list[_File] | None = None


class HubSource:
    """Lists and downloads by range requests, so that a download can go on in the middle.

    What the hub says is not trusted: a listing has a largest size, a time and a form, and the token is sent to the hub
    alone, also when it redirects.
    """

    def __init__(
        self, location: HubRepo, *, revision: str = "", endpoint: str | None = None, timeout_s: float = 30.0
    ) -> None:
        self._location = location
        self._revision = revision or location.revision
        self._given_endpoint = endpoint
        self._timeout_s = timeout_s
        self._client: httpx.AsyncClient | None = None

    @property
    def location(self) -> HubRepo:
        return self._location

    async def listing(self) -> Listing:
        _require_online()
        url = f"{self._endpoint}/api/models/{self._location.repo}/revision/{quote(self._revision, safe='')}"
        content = bytearray()
        try:
            async with asyncio.timeout(_LISTING_S), self._answer(f"{url}?blobs=true", {}) as answer:
                async for chunk in answer.aiter_raw(_CHUNK_BYTES):
                    content += chunk
                    if len(content) > _MAX_LISTING_BYTES:
                        raise self._senseless(f"more than {_MAX_LISTING_BYTES >> 20} MiB")
        except (httpx.TransportError, TimeoutError) as error:
            raise FetchInterrupted(
                f"The hub {self._endpoint} cannot be reached: {error or 'it takes too long'}. Check the network, "
                "HF_ENDPOINT and the proxy's variables."
            ) from error
        return self._listed(bytes(content))

    async def read(self, file: StatedFile, offset: int) -> AsyncGenerator[bytes, None]:
        revision = quote(self._revision, safe="")
        url = f"{self._endpoint}/{self._location.repo}/resolve/{revision}/{quote(file.name)}"
        try:
            async with self._answer(url, {"Range": f"bytes={offset}-"}) as answer:
                if offset and answer.status_code != 206:
                    raise FetchFailed(
                        f"{answer.url.host} does not answer range requests, so that the fetch cannot go on."
                    )
                async for chunk in answer.aiter_raw(_CHUNK_BYTES):
                    yield chunk
        except httpx.TransportError as error:
            raise FetchInterrupted(
                f"The connection to {self._endpoint} broke while {file.name} was fetched: "
                f"{error or type(error).__name__}."
            ) from error

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    @property
    def _endpoint(self) -> str:
        return self._given_endpoint or _default_endpoint()

    @asynccontextmanager
    async def _answer(self, url: str, headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
        """The hub's answer, which is no refusal; its body is still to be read."""
        # Another encoding would make the bytes differ from the file's.
        headers = {"Accept-Encoding": "identity", **headers}
        if token := _token():
            headers["Authorization"] = f"Bearer {token}"  # httpx drops it when it is sent on to another host
        if self._client is None:
            self._client = httpx.AsyncClient(follow_redirects=True, timeout=self._timeout_s)
        try:
            async with self._client.stream("GET", url, headers=headers) as answer:
                if answer.status_code >= 400:
                    raise self._refused(answer.status_code, answer.headers.get("X-Error-Code", ""))
                yield answer
        except (httpx.TooManyRedirects, httpx.InvalidURL) as error:
            raise FetchFailed(
                f"{self._endpoint} leads nowhere for {self._location.text}: {str(error).rstrip('.')}."
            ) from error

    def _listed(self, content: bytes) -> Listing:
        try:
            info = msgspec.json.decode(content, type=_Info)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._senseless(str(error)) from error
        if info.sha is not None and not _COMMIT.fullmatch(info.sha):
            raise self._senseless("a revision that is no commit")
        self._revision = info.sha or self._revision
        return Listing(files=tuple(map(_stated, info.siblings or ())), revision=self._revision)

    def _senseless(self, what: str) -> FetchFailed:
        return FetchFailed(
            f"{self._endpoint} answers what no hub does when it is asked for {self._location.text}: {what}. Check "
            "HF_ENDPOINT."
        )

    def _refused(self, status: int, code: str) -> AxonError:
        name, hub = self._location.text, self._endpoint
        if code == "RevisionNotFound":
            return FetchFailed(
                f"{self._location.repo} has no revision {self._revision}: name a branch, a tag or a commit.",
                code="source_not_found",
            )
        if status == 403 or code == "GatedRepo":
            return FetchFailed(
                f"{hub} does not let you read {name}: accept its terms on its page there, and set HF_TOKEN to a "
                "token of the account that did (403).",
                code="source_forbidden",
            )
        if status in (401, 404):
            return FetchFailed(
                f"{hub} has no {name}, or it is private: check the name; for a private one set HF_TOKEN to a token "
                f"that may read it ({status}).",
                code="source_not_found",
            )
        if status == 429 or status >= 500:
            return FetchInterrupted(f"{hub} answered {status} for {name}. Try again later.")
        return FetchFailed(f"{hub} answered {status} for {name}.")


def _default_endpoint() -> str:
    _require_library()
    from huggingface_hub import HfApi

    return str(HfApi().endpoint)


def _token() -> str | None:
    _require_library()
    from huggingface_hub import get_token

    return get_token()


def _require_online() -> None:
    _require_library()
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise FetchFailed("HF_HUB_OFFLINE is set, so that no hub is asked. Unset it.", code="source_offline")


def _require_library() -> None:
    try:
        import huggingface_hub  # noqa: F401
    except ImportError as error:
        raise Misconfigured(
            "A source hf://… needs the package huggingface_hub: install axon-serving[fetch]."
        ) from error


def _stated(file: _File) -> StatedFile:
    check = None
    if file.lfs is not None and file.lfs.sha256:
        check = Check(kind="sha256", value=file.lfs.sha256)
    elif file.blob_id:
        check = Check(kind="git", value=file.blob_id)
    return StatedFile(name=file.rfilename, size=file.size or 0, tag=file.blob_id or "", check=check)
