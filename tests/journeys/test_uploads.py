"""Uploads that are wrong, hostile or too much: refused by name, kept nowhere, and never whole in memory."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, wait_until

_LINE = b'{"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {}}\n'


def upload(http: httpx.Client, data: bytes, purpose: str | None = "batch", name: str = "file") -> httpx.Response:
    form: dict[str, Any] = {name: ("a.jsonl", data)}
    if purpose is not None:
        form["purpose"] = (None, purpose)
    return http.post("/v1/files", files=form)


@pytest.mark.parametrize(
    ("sent", "status", "param"),
    [
        ({"data": b""}, 400, "file"),
        ({"data": _LINE, "purpose": "fine-tune"}, 400, "purpose"),
        ({"data": _LINE, "purpose": "batch_output"}, 400, "purpose"),
        ({"data": _LINE, "purpose": None}, 400, "purpose"),
        ({"data": _LINE, "name": "document"}, 400, "file"),
    ],
    ids=str,
)
def test_a_wrong_form_is_refused_by_name(echo: Server, sent: dict[str, Any], status: int, param: str) -> None:
    with echo.client() as http:
        reply = upload(http, **sent)
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"content-type": "application/json"}, b"{}"),
        ({"content-type": "multipart/form-data"}, b"--x--"),
        ({"content-type": "multipart/form-data; boundary=x"}, b"no boundary at all"),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x\r\nContent-Disposition: form-data\r\n\r\na"),
    ],
)
def test_what_is_no_form_is_refused(echo: Server, headers: dict[str, str], body: bytes) -> None:
    with echo.client() as http:
        reply = http.post("/v1/files", content=body, headers=headers)
    assert reply.status_code == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"


def test_an_upload_without_a_length_is_refused_before_it_is_read(echo: Server) -> None:
    def endless() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        yield from (b"a" * 65536 for _ in range(16))

    headers = {"content-type": "multipart/form-data; boundary=x"}
    with echo.client() as http:
        reply = http.post("/v1/files", content=endless(), headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "length_required")


def resident_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) << 10


def test_large_files_are_not_held_in_memory_and_limits_hold(fresh: Fresh) -> None:
    large = 64 << 20
    server = fresh.start(batches_max_file_bytes=large, admission_stored_bytes=large + (20 << 20))
    with server.client() as http:
        assert upload(http, _LINE).status_code == 200
        before = resident_bytes(server)
        data = _LINE * (large // len(_LINE))
        kept = upload(http, data)
        assert kept.status_code == 200, kept.text
        with http.stream("GET", f"/v1/files/{kept.json()['id']}/content") as reply:
            assert sum(map(len, reply.iter_raw())) == len(data)
        assert resident_bytes(server) - before < 24 << 20
        assert upload(http, data + _LINE * 2000).status_code == 413
        full = upload(http, data)
        assert (full.status_code, full.json()["error"]["code"]) == (429, "storage_quota_exceeded")
        assert http.delete(f"/v1/files/{kept.json()['id']}").status_code == 200
        assert upload(http, _LINE * (large // 2 // len(_LINE))).status_code == 200
    assert list((server.data_dir / "files" / "partial").iterdir()) == []


def test_a_slow_upload_is_cut_off_and_leaves_nothing(fresh: Fresh) -> None:
    server = fresh.start(gateway_body_timeout_s=0.3, batches_max_uploads=1)
    partial = server.data_dir / "files" / "partial"
    with begun_upload(server) as slow, server.client() as http:
        wait_until(lambda: list(partial.iterdir()) or slow_answer(slow), "the upload has begun")
        assert slow.recv(12).endswith(b"408")
        wait_until(lambda: not list(partial.iterdir()), "nothing is left")
        assert upload(http, _LINE).status_code == 200


def begun_upload(server: Server) -> socket.socket:
    """A connection that has sent the beginning of a file."""
    address = urlsplit(server.url)
    head = (
        f"POST /v1/files HTTP/1.1\r\nHost: axon\r\nAuthorization: Bearer {server.key}\r\nContent-Length: 100000\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
        '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhello'
    )
    slow = socket.create_connection((address.hostname, address.port), timeout=60)
    slow.sendall(head.encode())
    return slow


def test_while_all_uploads_of_a_gateway_are_taken_one_more_is_told_to_come_again(fresh: Fresh) -> None:
    server = fresh.start(batches_max_all_uploads=1)
    with server.client() as http:
        with begun_upload(server):
            partial = server.data_dir / "files" / "partial"
            wait_until(lambda: list(partial.iterdir()), "the upload has begun")
            refused = upload(http, _LINE)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
            assert refused.headers["retry-after"]
        wait_until(lambda: upload(http, _LINE).status_code == 200, "its place is free again")


def slow_answer(connection: socket.socket) -> bool:
    """Whether the answer is there already; it stays to be read."""
    connection.setblocking(False)
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(60)


def test_a_file_that_a_running_batch_reads_is_not_deleted(fresh: Fresh) -> None:
    server = fresh.start(batches_max_running=0)  # nobody runs it
    with server.client() as http:
        file_id = upload(http, _LINE).json()["id"]
        ask = {"input_file_id": file_id, "endpoint": "/v1/completions", "completion_window": "24h"}
        batch = http.post("/v1/batches", json=ask).json()
        assert batch["status"] == "validating"
        assert http.delete(f"/v1/files/{file_id}").json()["error"]["code"] == "file_in_use"
        for wrong in ({"endpoint": "/v1/embeddingz"}, {"completion_window": "1h"}, {"input_file_id": "file-no"}):
            reply = http.post("/v1/batches", json={**ask, **wrong})
            assert reply.status_code in (400, 404)
            assert reply.json()["error"]["param"] in wrong
