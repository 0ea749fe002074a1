"""A repository of a hub with Hugging Face's API, read over HTTP at one commit. HF_ENDPOINT and HF_TOKEN hold."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import httpx

from axon.errors import AxonError, FetchFailed, FetchInterrupted, Misconfigured
from axon.weights.source import Check, HubRepo, Listing, StatedFile

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoSibling

_CHUNK_BYTES = 1 << 20


class HubSource:
    """Lists with huggingface_hub and downloads by range requests, so that a download can go on in the middle."""

    def __init__(
        self, location: HubRepo, *, revision: str = "", endpoint: str | None = None, timeout_s: float = 30.0
    ) -> None:
        self._location = location
        self._revision = revision or location.revision
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._client: httpx.AsyncClient | None = None

    @property
    def location(self) -> HubRepo:
        return self._location

    async def listing(self) -> Listing:
        api = _api(self._endpoint)
        try:
            info = await asyncio.to_thread(
                api.model_info,
                self._location.repo,
                revision=self._revision,
                files_metadata=True,
                timeout=self._timeout_s,
            )
        except Exception as error:  # the library lets errors of its HTTP client through
            raise self._explained(error) from error
        self._revision = info.sha or self._revision
        return Listing(files=tuple(map(_stated, info.siblings or ())), revision=self._revision)

    async def read(self, file: StatedFile, offset: int) -> AsyncGenerator[bytes, None]:
        from huggingface_hub import get_token, hf_hub_url

        endpoint = _api(self._endpoint).endpoint
        url = hf_hub_url(self._location.repo, file.name, revision=self._revision, endpoint=endpoint)
        # Another encoding would make the bytes differ from the file's.
        headers = {"Accept-Encoding": "identity", "Range": f"bytes={offset}-"}
        if token := get_token():
            headers["Authorization"] = f"Bearer {token}"  # httpx drops it when it is sent on to another host
        if self._client is None:
            self._client = httpx.AsyncClient(follow_redirects=True, timeout=self._timeout_s)
        try:
            async with self._client.stream("GET", url, headers=headers) as answer:
                self._check(answer, offset)
                async for chunk in answer.aiter_raw(_CHUNK_BYTES):
                    yield chunk
        except httpx.TransportError as error:
            raise FetchInterrupted(
                f"The connection to {endpoint} broke while {file.name} was fetched: {error or type(error).__name__}."
            ) from error

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _check(self, answer: httpx.Response, offset: int) -> None:
        if answer.status_code >= 400:
            raise self._refused(answer.status_code)
        if offset and answer.status_code != 206:
            raise FetchFailed(f"{answer.url.host} does not answer range requests, so that the fetch cannot go on.")

    def _explained(self, error: Exception) -> AxonError:
        from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, OfflineModeIsEnabled, RevisionNotFoundError

        if isinstance(error, OfflineModeIsEnabled):
            return FetchFailed("HF_HUB_OFFLINE is set, so that no hub is asked. Unset it.", code="source_offline")
        if isinstance(error, RevisionNotFoundError):
            return FetchFailed(
                f"{self._location.repo} has no revision {self._revision}: name a branch, a tag or a commit.",
                code="source_not_found",
            )
        if isinstance(error, GatedRepoError):
            return self._refused(403)
        if isinstance(error, HfHubHTTPError):
            return self._refused(error.response.status_code)
        return FetchInterrupted(
            f"The hub {_api(self._endpoint).endpoint} cannot be reached: {error}. Check the network, HF_ENDPOINT and "
            "the proxy's variables.",
        )

    def _refused(self, status: int) -> AxonError:
        name, hub = self._location.text, _api(self._endpoint).endpoint
        match status:
            case 401 | 404:
                return FetchFailed(
                    f"{hub} has no {name}, or it is private: check the name; for a private one set HF_TOKEN to a token "
                    f"that may read it ({status}).",
                    code="source_not_found",
                )
            case 403:
                return FetchFailed(
                    f"{hub} does not let you read {name}: accept its terms on its page there, and set HF_TOKEN to a "
                    "token of the account that did (403).",
                    code="source_forbidden",
                )
        if status == 429 or status >= 500:
            return FetchInterrupted(f"{hub} answered {status} for {name}. Try again later.")
        return FetchFailed(f"{hub} answered {status} for {name}.")


def _api(endpoint: str | None) -> "HfApi":
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise Misconfigured(
            "A source hf://… needs the package huggingface_hub: install axon-serving[fetch]."
        ) from error
    return HfApi(endpoint=endpoint, library_name="axon")


def _stated(file: "RepoSibling") -> StatedFile:
    check = None
    if file.lfs is not None and file.lfs.sha256:
        check = Check(kind="sha256", value=file.lfs.sha256)
    elif file.blob_id:
        check = Check(kind="git", value=file.blob_id)
    return StatedFile(name=file.rfilename, size=file.size or 0, tag=file.blob_id or "", check=check)
