"""HTTP client of a server's files and batches, for the command line. Shows nothing itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from axon.console.server.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """A batch as the server tells it."""

    id: str
    status: str
    total: int
    completed: int
    failed: int
    output_file_id: str
    error_file_id: str
    problems: tuple[str, ...]
    """What is wrong with lines of its input, for a batch that has failed."""
    raw: Any
    """The server's own object, for machines."""

    @property
    def is_over(self) -> bool:
        """Whether nothing changes any more."""
        return self.status in ("completed", "failed", "expired", "cancelled")


class BatchServer(Server):
    """A connection to a server; use it as a context."""

    def upload(self, path: Path) -> str:
        """Uploads a file, which is read piece by piece; returns its id."""
        with path.open("rb") as file:
            form = {"purpose": (None, "batch"), "file": (path.name, file, "application/jsonl")}
            return str(self._asked("POST", "/v1/files", files=form)["id"])

    def create(self, file_id: str, endpoint: str) -> BatchStatus:
        """Makes a batch over an uploaded file."""
        body = {"input_file_id": file_id, "endpoint": endpoint, "completion_window": "24h"}
        return _status(self._asked("POST", "/v1/batches", json=body))

    def status(self, batch_id: str) -> BatchStatus:
        """The batch as it is now."""
        return _status(self._asked("GET", f"/v1/batches/{quote(batch_id, safe='')}"))

    def cancel(self, batch_id: str) -> BatchStatus:
        """Asks for a batch's cancellation."""
        return _status(self._asked("POST", f"/v1/batches/{quote(batch_id, safe='')}/cancel"))

    @contextmanager
    def content(self, file_id: str) -> Iterator[Iterator[bytes]]:
        """A file's bytes, piece by piece."""
        try:
            with self._client.stream("GET", f"/v1/files/{file_id}/content") as response:
                if response.is_error:
                    response.read()
                self.check(response)
                yield response.iter_bytes()
        except httpx.HTTPError as error:
            raise self.translate(error) from error

    def _asked(self, method: str, path: str, **request: Any) -> Any:
        try:
            response = self._client.request(method, path, **request)
        except httpx.HTTPError as error:
            raise self.translate(error) from error
        self.check(response)
        return response.json()


def _status(body: Any) -> BatchStatus:
    counts, errors = body.get("request_counts") or {}, body.get("errors") or {}
    return BatchStatus(
        id=str(body["id"]),
        status=str(body["status"]),
        total=int(counts.get("total", 0)),
        completed=int(counts.get("completed", 0)),
        failed=int(counts.get("failed", 0)),
        output_file_id=str(body.get("output_file_id") or ""),
        error_file_id=str(body.get("error_file_id") or ""),
        problems=tuple(_problem(each) for each in errors.get("data", ())),
        raw=body,
    )


def _problem(body: Any) -> str:
    line = body.get("line")
    return f"line {line}: {body.get('message')}" if line is not None else str(body.get("message"))
