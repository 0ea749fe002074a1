"""HTTP client of a running server, for the command line: list models, stream a chat."""

import contextlib
import json
import re
from collections.abc import Generator, Iterator
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import httpx

from axon.console.chat import ChatRequest, Piece
from axon.errors import AxonError, Forbidden, Misconfigured, Unauthenticated, Unavailable
from axon.runtime.loopback import is_loopback_host
from axon.settings import client_variable

if TYPE_CHECKING:
    from axon.settings import Settings

_NO_GRACE = {"x-axon-reader-grace": "0"}
"""The answer ends with its connection: nobody will resume it."""
_STOP_S = 5.0


class Server:
    """A connection to a server; use it as a context."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        # A proxy cannot reach this machine's loopback.
        self._trust_env = not _is_loopback(url)
        self._client = httpx.Client(
            base_url=url,
            headers=self._headers,
            # The server sends something every few seconds, even when the model is silent.
            timeout=httpx.Timeout(60.0, connect=5.0),
            trust_env=self._trust_env,
        )

    @classmethod
    def find(cls, settings: "Settings", *, url: str | None, key: str | None) -> Self:
        """The server that the flags, the environment or the settings name, in this order."""
        url = _address(url or client_variable("AXON_URL") or _own_url(settings))
        return cls(url, key or client_variable("AXON_API_KEY") or _development_key(settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def asynchronous(self, timeout_s: float) -> httpx.AsyncClient:
        """A client of the same server with the same key, for an event loop; the caller closes it."""
        return httpx.AsyncClient(
            base_url=self.url, headers=self._headers, timeout=httpx.Timeout(timeout_s), trust_env=self._trust_env
        )

    def models(self) -> list[str]:
        """Names of the models that the server lists."""
        return [name for name, _ in self.model_states()]

    def model_states(self) -> list[tuple[str, str]]:
        """Name and state of each model that the server lists; a server of an earlier release tells no state."""
        try:
            response = self._client.get("/v1/models")
        except httpx.HTTPError as error:
            raise self.translate(error) from error
        self.check(response)
        return [(str(each["id"]), str(each.get("state", ""))) for each in response.json()["data"]]

    def stream_chat(self, request: ChatRequest) -> Generator[Piece, None, None]:
        """Yields the pieces of an answer as they come. Closing the generator early cancels the answer."""
        asked = self._client.stream("POST", "/v1/chat/completions", json=_body(request), headers=_NO_GRACE)
        try:
            with asked as response:
                if response.is_error:
                    response.read()
                self.check(response)
                try:
                    yield from _contents(response.iter_lines())
                except (GeneratorExit, KeyboardInterrupt):
                    self._stop(response.headers.get("x-axon-stream", ""))
                    raise
        except httpx.HTTPError as error:
            raise self.translate(error) from error

    def _stop(self, stream_id: str) -> None:
        """Cancels the answer; if that fails, the answer still ends with its connection."""
        if stream_id:
            with contextlib.suppress(httpx.HTTPError):
                self._client.delete(f"/v1/streams/{stream_id}", timeout=_STOP_S)

    def translate(self, error: httpx.HTTPError) -> AxonError:
        """The error that a person is told for a failed connection."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return Unavailable(f"No server answers at {self.url}. Start one with `axon serve`, or name it with --url.")
        return Unavailable(f"The connection to {self.url} broke: {error or type(error).__name__}. Ask again.")

    def check(self, response: httpx.Response) -> None:
        """Raises the error that an answer tells; its body must have been read."""
        if response.status_code == 401:
            raise Unauthenticated(
                f"The server at {self.url} does not know this key. Give one with --key or AXON_API_KEY "
                "(`axon keys create` makes one)."
            )
        if response.status_code == 403 and _error_code(response) == "insufficient_permissions":
            hint = (
                "Make one with `axon keys create --tenant ops --scope admin`, and give it with --key or AXON_API_KEY."
            )
            raise Forbidden(f"{_error_message(response)} {hint}")
        if response.is_error:
            raise AxonError(_error_message(response), code=_error_code(response))


def _body(request: ChatRequest) -> dict[str, object]:
    given = {name: value for name, value in asdict(request).items() if value is not None}
    return {**given, "stream": True}


def _contents(lines: Iterator[str]) -> Iterator[Piece]:
    for line in lines:
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            raise AxonError(str(chunk["error"].get("message", "The answer was broken off.")))
        for choice in chunk.get("choices", ()):
            content, is_cut = choice.get("delta", {}).get("content"), choice.get("finish_reason") == "length"
            if content or is_cut:
                yield Piece(text=content or "", is_cut=is_cut)


def _error_message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered {response.status_code} {response.reason_phrase}. Is it Axon?"


def _error_code(response: httpx.Response) -> str | None:
    try:
        return str(response.json()["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return None


def _address(written: str) -> str:
    """The server's address without the API's path; a host with a port or a domain needs no scheme."""
    bare = re.fullmatch(r"(localhost|[\w-]+(\.[\w-]+)+|([\w.-]+|\[[0-9a-fA-F:.]+\]):\d+)(/.*)?", written)
    url = (f"http://{written}" if bare else written).rstrip("/").removesuffix("/v1")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        is_address = False
    if not is_address:
        raise Misconfigured(f"{written} is no address of a server. Write it as HOST:PORT or http://HOST:PORT.")
    return url


def _own_url(settings: "Settings") -> str:
    """URL of the server that uses this data folder, else the configured address."""
    with contextlib.suppress(OSError):
        return (settings.data_dir / "server").read_text().strip()
    host = settings.gateway.host
    # Where a server listens on every address, loopback is one of them.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"http://[{host}]:{settings.gateway.port}" if ":" in host else f"http://{host}:{settings.gateway.port}"


def _development_key(settings: "Settings") -> str | None:
    try:
        return (settings.data_dir / "dev-key").read_text("utf-8").strip() or None
    except OSError:
        return None


def _is_loopback(url: str) -> bool:
    return is_loopback_host(urlsplit(url).hostname or "")
