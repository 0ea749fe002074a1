"""Uploads and input files that are almost right: no 5xx, and every batch over them ends, each of its lines once."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance import near_valid
from tests.conformance.test_fuzz import EXAMPLES, QUIET
from tests.journeys.server import Server, running, wait_until
from tests.journeys.test_batches import ENDED

BOUNDARY = "part-of-a-test"
_HEADS = [
    b'Content-Disposition: form-data; name="file"; filename="a.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n',
    b'Content-Disposition: form-data; name="file"\r\n\r\n',
    b'Content-Disposition: form-data; name="purpose"\r\n\r\n',
    b"content-disposition:form-data;name=purpose\r\n\r\n",
    b'Content-Disposition: form-data; name="expires_after[seconds]"\r\n\r\n',
    b"Content-Disposition: form-data; name=\"file\"; filename*=UTF-8''%c3%a9.jsonl\r\n\r\n",
    b'Content-Disposition: form-data; name="file"; filename="' + b"x" * 9000 + b'"\r\n\r\n',
    b"Content-Disposition: attachment\r\n\r\n",
    b"X: y\r\n\r\n",
    b"\r\n\r\n",
    b"",
]
_GOOD = [_HEADS[0] + b"{}", _HEADS[2] + b"batch"]
_PARTS = st.lists(
    st.sampled_from([*_GOOD, *_GOOD])
    | st.builds(lambda head, data: head + data, st.sampled_from(_HEADS), st.sampled_from([b"batch", b"3600", b"\0"])),
    max_size=4,
)
_BETWEEN = st.sampled_from(
    [f"\r\n--{BOUNDARY}\r\n", f"\r\n--{BOUNDARY}\r\n", f"\n--{BOUNDARY}\n", f"--{BOUNDARY}", "\r\n"]
).map(str.encode)
_END = st.sampled_from([f"\r\n--{BOUNDARY}--\r\n", f"\r\n--{BOUNDARY}--\r\n", f"\r\n--{BOUNDARY}", ""]).map(str.encode)
_TYPES = st.sampled_from(
    [f"multipart/form-data; boundary={BOUNDARY}"] * 4
    + [
        f'multipart/form-data; boundary="{BOUNDARY}"',
        "multipart/form-data",
        "multipart/mixed; boundary=x",
        "text/plain",
    ]
)


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Server]:
    """A server whose model's context is short and whose batches begin at once."""
    limits = {"engine_max_model_len": 128, "admission_requests_per_minute": 0, "batches_poll_s": 0.05}
    with running(tmp_path / "data", engine_kind="echo", **limits) as server:
        yield server


@pytest.mark.long("fuzz near valid")
@pytest.mark.timeout(7200)
def test_no_form_that_is_almost_right_makes_the_server_fail(fuzzed: Server) -> None:
    found = Counter[int]()
    good = f"--{BOUNDARY}\r\n".encode() + f"\r\n--{BOUNDARY}\r\n".encode().join(_GOOD)

    @settings(max_examples=10 * EXAMPLES, deadline=None, database=None, suppress_health_check=QUIET)
    @given(_PARTS, _BETWEEN, _END, _TYPES, st.integers(0, 4))
    def send(parts: list[bytes], between: bytes, end: bytes, kind: str, cut: int) -> None:
        body = between.lstrip() + between.join(parts) + end
        reply = http.post("/v1/files", content=body[: len(body) - cut], headers={"content-type": kind})
        found[reply.status_code] += 1
        assert reply.status_code < 500, reply.text
        if reply.status_code >= 400:
            assert reply.json()["error"]["message"]

    with fuzzed.client() as http:
        send()
        whole = good + f"\r\n--{BOUNDARY}--\r\n".encode()
        kind = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
        assert http.post("/v1/files", content=whole, headers=kind).status_code == 200
    print(dict(found))
    assert "Traceback" not in fuzzed.log
    assert list((fuzzed.data_dir / "files" / "partial").iterdir()) == [], "a refused upload has left bytes"


@pytest.mark.long("fuzz near valid")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("endpoint", ["/v1/chat/completions", "/v1/completions", "/v1/responses"])
def test_every_batch_over_lines_that_are_almost_right_ends(fuzzed: Server, endpoint: str) -> None:
    found = Counter[str]()
    line = st.builds(
        lambda name, body: {"custom_id": name, "method": "POST", "url": endpoint, "body": body},
        st.uuids().map(str),
        near_valid.OPERATIONS[endpoint].map(lambda body: {**body, "stream": False}),
    )
    lines = st.lists(line | near_valid.bodies(line), min_size=1, max_size=4)

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=QUIET)
    @given(lines, st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"]))
    def run(lines: list[Any], between: bytes) -> None:
        data = between.join(json.dumps(line).encode() for line in lines)
        form = {"purpose": (None, b"batch"), "file": ("a.jsonl", data)}
        file_id = http.post("/v1/files", files=form).raise_for_status().json()["id"]
        ask = {"input_file_id": file_id, "endpoint": endpoint, "completion_window": "24h"}
        batch_id = http.post("/v1/batches", json=ask).raise_for_status().json()["id"]
        wait_until(lambda: _batch(http, batch_id)["status"] in ENDED, "the batch ends")
        batch = _batch(http, batch_id)
        found[batch["status"]] += 1
        assert batch["status"] in ("completed", "failed")
        if batch["status"] == "failed":
            assert batch["errors"]["data"]
        else:
            ids = [
                line["custom_id"] for name in ("output_file_id", "error_file_id") for line in _lines(http, batch[name])
            ]
            assert sorted(ids) == sorted(line["custom_id"] for line in lines)

    with fuzzed.client() as http:
        run()
    print(f"{endpoint}: {dict(found)}")
    assert "Traceback" not in fuzzed.log


def _batch(http: httpx.Client, batch_id: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/v1/batches/{batch_id}").raise_for_status().json()
    return found


def _lines(http: httpx.Client, file_id: str | None) -> list[dict[str, Any]]:
    if file_id is None:
        return []
    return [json.loads(line) for line in http.get(f"/v1/files/{file_id}/content").text.splitlines()]
