"""The HTTP response to an error, in the shape of the API that the path belongs to. Knows no route's meaning."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from axon.errors import AxonError
from axon.gateway.http import anthropic, ollama
from axon.gateway.http.errors import encoded, headers_of, status_of


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response's status, headers and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def refusal_of(error: AxonError, path: str, request_id: str, *, status: int | None = None) -> Refusal:
    """Returns the response to an error on this path. ``status`` takes the place of the error's own."""
    headers = {"content-type": "application/json", **headers_of(error)}
    if ollama.has(path):
        return Refusal(status or status_of(error), headers, msgspec.json.encode(ollama.body_of(error)))
    if not anthropic.has(path):
        return Refusal(status or status_of(error), headers, encoded(error))
    status = status or anthropic.status_of(error)
    return Refusal(status, headers, msgspec.json.encode(anthropic.body_of(error, request_id, status)))
