"""Real HTTP servers with files: one speaks as much of S3 as a reader needs, one a hub's API. Both can misbehave.

They answer ListObjectsV2 (in pages), HEAD and GET with Range and If-Match, and count what they send.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_PAGE = 3
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How one answer goes wrong."""

    status: int = 0
    """An error in place of the content."""
    cut_after: int | None = None
    """Bytes after which the connection is closed."""
    flip_at: int | None = None
    """Offset in the file of a byte that is sent wrong."""


@dataclass(slots=True)
class Get:
    """One GET of a file."""

    name: str
    offset: int
    num_bytes: int = 0


@dataclass(slots=True)
class Files:
    """The files of a server, its log and its moods."""

    content: dict[str, bytes]
    fault: Callable[[Get], Fault | None] = lambda _: None
    pause_s: float = 0.0
    """Seconds between two pieces of 64 KiB."""
    etag_is_md5: bool = True
    refuse: int = 0
    """A status for every request."""
    gets: list[Get] = field(default_factory=list)
    lists: int = 0
    token: str = ""
    """A hub that wants this token."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    def etag(self, name: str) -> str:
        found = hashlib.md5(self.content[name]).hexdigest()
        return f'"{found}"' if self.etag_is_md5 else f'"{found}-2"'

    def gets_of(self, name: str) -> list[Get]:
        with self.lock:
            return [get for get in self.gets if get.name == name]

    @property
    def num_sent(self) -> int:
        with self.lock:
            return sum(get.num_bytes for get in self.gets)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: Files

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_HEAD(self) -> None:
        self._answer_file(self._name())

    def say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _name(self) -> str:
        raise NotImplementedError

    def _answer_file(self, name: str) -> None:
        files = self.files
        if name not in files.content:
            return self.say(404, b"<Error><Code>NoSuchKey</Code></Error>")
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted != files.etag(name):
            return self.say(412)
        content = files.content[name]
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin = int(found[1]) if found else 0
        end = min(int(found[2]) + 1, len(content)) if found and found[2] else len(content)
        if found and begin >= len(content) and content:
            return self.say(416)
        get = Get(name, begin)
        fault = None
        if self.command == "GET":
            with files.lock:
                files.gets.append(get)
            fault = files.fault(get)
        if fault is not None and fault.status:
            return self.say(fault.status, b"<Error><Code>SlowDown</Code></Error>")
        self.send_response(206 if found else 200)
        self.send_header("ETag", files.etag(name))
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("Content-Type", "application/octet-stream")
        if found:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        if self.command == "GET":
            self._send(get, content[begin:end], fault or Fault())
        return None

    def _send(self, get: Get, content: bytes, fault: Fault) -> None:
        if fault.flip_at is not None and 0 <= (at := fault.flip_at - get.offset) < len(content):
            content = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        if fault.cut_after is not None and fault.cut_after < len(content):
            content = content[: fault.cut_after]
            self.close_connection = True
        for at in range(0, len(content), _CHUNK):
            if self.files.pause_s and self.files.ended.wait(self.files.pause_s):
                self.close_connection = True
                return
            try:
                self.wfile.write(content[at : at + _CHUNK])
            except OSError:  # the reader has gone
                self.close_connection = True
                return
            with self.files.lock:
                get.num_bytes += len(content[at : at + _CHUNK])


class _S3(_Handler):
    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if self.files.refuse:
            return self.say(self.files.refuse, b"<Error><Code>AccessDenied</Code></Error>")
        if "list-type" in (query := parse_qs(url.query)):
            return self._list(query)
        return self._answer_file(self._name())

    def _name(self) -> str:
        """Keys are named with their bucket: ``bucket/key``."""
        return unquote(urlsplit(self.path).path).removeprefix("/")

    def _list(self, query: dict[str, list[str]]) -> None:
        self.files.lists += 1
        bucket = unquote(urlsplit(self.path).path).strip("/")
        prefix = query.get("prefix", [""])[0]
        keys = sorted(
            name.removeprefix(f"{bucket}/") for name in self.files.content if name.startswith(f"{bucket}/{prefix}")
        )
        begin = int(query.get("continuation-token", ["0"])[0])
        more = begin + _PAGE < len(keys)
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(self.files.etag(f'{bucket}/{key}'))}</ETag>"
            f"<Size>{len(self.files.content[f'{bucket}/{key}'])}</Size></Contents>"
            for key in keys[begin : begin + _PAGE]
        )
        token = f"<NextContinuationToken>{begin + _PAGE}</NextContinuationToken>" if more else ""
        body = (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket}</Name><KeyCount>{len(keys[begin : begin + _PAGE])}</KeyCount>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>"
        )
        self.say(200, body.encode(), {"Content-Type": "application/xml"})


class _Hub(_Handler):
    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.files.refuse:
            code = {403: "GatedRepo", 401: "RepoNotFound", 404: "RepoNotFound"}.get(self.files.refuse, "Other")
            return self.say(self.files.refuse, b"{}", {"X-Error-Code": code})
        is_known = not self.files.token or self.headers.get("Authorization") == f"Bearer {self.files.token}"
        if not path.startswith("/cdn/") and not is_known:
            return self.say(401, b"{}", {"X-Error-Code": "RepoNotFound"})
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path):
            return self._info(found[1], found[2])
        if found := re.fullmatch(rf"/([^/]+/[^/]+)/resolve/{COMMIT}/(.+)", path):
            return self.say(302, b"", {"Location": f"/cdn/{quote(found[1])}/{quote(found[2])}"})
        return self._answer_file(self._name())

    def _name(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/cdn/")

    def _info(self, repo: str, revision: str) -> None:
        self.files.lists += 1
        if revision not in ("main", COMMIT):
            return self.say(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        siblings = []
        for name, content in self.files.content.items():
            if name.startswith(f"{repo}/"):
                blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
                each: dict[str, Any] = {
                    "rfilename": name.removeprefix(f"{repo}/"),
                    "size": len(content),
                    "blobId": blob,
                }
                if name.endswith((".safetensors", ".gguf")):
                    digest = hashlib.sha256(content).hexdigest()
                    each["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
                siblings.append(each)
        if not siblings:
            return self.say(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        body = {"id": repo, "modelId": repo, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings}
        return self.say(200, json.dumps(body).encode(), {"Content-Type": "application/json"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that has gone is no news."""


@contextmanager
def _serving(handler: type[_Handler], files: Files) -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), type("Bound", (handler,), {"files": files}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        files.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def s3_server(files: Files) -> Iterator[str]:
    """Serves buckets; yields the endpoint."""
    with _serving(_S3, files) as url:
        yield url


@contextmanager
def hub_server(files: Files) -> Iterator[str]:
    """Serves repositories; yields the endpoint."""
    with _serving(_Hub, files) as url:
        yield url
