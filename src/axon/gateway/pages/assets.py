"""The pages' files: read from the package, compressed once, with an ETag. Knows no session and no route.

A file is read again when it changes on disk, so that whoever works on a page sees it after a reload.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

from axon.errors import NotFound

ROOMS = ("common", "chat", "console")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*(\.[a-z0-9]+)+")
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
}
"""Content types by the ending of a file's name; others are not served."""
_HTML = "text/html; charset=utf-8"
_LEAST_COMPRESSED = 1024
"""Smaller files are sent as they are."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, as it is sent."""

    stamp: tuple[int, int]
    """Its time of change and size on disk, by which a change is noticed."""
    content: bytes
    compressed: bytes
    """The same by gzip; empty where that gains nothing."""
    etag: str
    media_type: str


class Assets:
    """The files below one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(__file__).resolve().parents[1] / "ui"
        self._read: dict[str, Asset] = {}

    def file(self, room: str, name: str) -> Asset:
        """Returns a page's file; raises ``NotFound`` where there is none of this name."""
        kind = _TYPES.get(name.rpartition(".")[2])
        if room not in ROOMS or kind is None or _NAME.fullmatch(name) is None:
            raise _missing(room, name)
        return self._asset(room, name, kind)

    def page(self, room: str, name: str) -> Asset:
        """Returns the HTML of a page."""
        return self._asset(room, name, _HTML)

    def _asset(self, room: str, name: str, media_type: str) -> Asset:
        path = self._folder / room / name
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._read.get(f"{room}/{name}")
            if known is None or known.stamp != stamp:
                known = self._read[f"{room}/{name}"] = _asset(stamp, path.read_bytes(), media_type)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise _missing(room, name) from None
        return known


def answer(asset: Asset, asked: Mapping[str, str], headers: Mapping[str, str]) -> Response:
    """Returns the response: 304 if the browser has this file already, and compressed if it takes that."""
    shared = {**headers, "etag": asset.etag, "cache-control": "no-cache", "vary": "accept, accept-encoding"}
    if asset.etag in [each.strip().removeprefix("W/") for each in asked.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=shared)
    if asset.compressed and "gzip" in asked.get("accept-encoding", ""):
        return Response(asset.compressed, media_type=asset.media_type, headers={**shared, "content-encoding": "gzip"})
    return Response(asset.content, media_type=asset.media_type, headers=shared)


def _asset(stamp: tuple[int, int], content: bytes, media_type: str) -> Asset:
    compressed = gzip.compress(content, mtime=0) if len(content) >= _LEAST_COMPRESSED else b""
    if len(compressed) >= len(content):
        compressed = b""
    return Asset(stamp, content, compressed, f'"{hashlib.sha256(content).hexdigest()[:32]}"', media_type)


def _missing(room: str, name: str) -> NotFound:
    return NotFound(f"There is no file {room}/{name}.", code="unknown_url")
