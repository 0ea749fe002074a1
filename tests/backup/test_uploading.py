"""A backup is copied into a bucket whole, and a bucket that is not there or is named wrongly is told by name."""

import builtins
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.adapters.backup import uploading
from axon.adapters.backup.peeking import require_archive
from axon.adapters.backup.uploading import BACKUPS, part_bytes, upload
from axon.adapters.backup.writing import ArchiveWriter
from axon.adapters.files.bucket import PART_BYTES, REQUEST_S, location_of, open_bucket
from axon.bootstrap.backups import upload_backup
from axon.domain.backup import FilesFacts, Manifest
from axon.errors import DependencyDown, InvalidInput, Misconfigured, ServiceRefuses
from tests.services import s3
from tests.services.process import free_port

_MOST_PARTS_OF_S3 = 10_000
_LARGEST_PART_OF_S3 = 5 << 30


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("num_bytes", [0, 1000, (16 << 20) + 1])
def test_what_is_in_the_bucket_is_the_file(num_bytes: int, tmp_path: Path) -> None:
    server = s3.shared_server()
    bucket = server.new_bucket()
    path = tmp_path / "axon-20271231T030000Z.backup"
    path.write_bytes(b"axon" * (num_bytes // 4) + b"!" * (num_bytes % 4))
    where = upload(path, f"s3://{bucket}/nightly", endpoint=server.url)
    assert where == f"s3://{bucket}/nightly/{path.name}"
    store = open_bucket(location_of(f"s3://{bucket}"), BACKUPS, endpoint=server.url)
    assert bytes(obstore.get(store, f"nightly/{path.name}").bytes()) == path.read_bytes()
    assert server.num_uploads(bucket) == 0


def test_a_bucket_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "one.backup"
    path.write_bytes(b"axon")
    with pytest.raises(ServiceRefuses, match="There is no bucket not-there"):
        upload(path, "s3://not-there/nightly", endpoint=s3.shared_server().url)


@given(st.integers(0, 40 << 40))
def test_no_archive_has_more_parts_than_s3_takes(num_bytes: int) -> None:
    each = part_bytes(num_bytes)
    assert PART_BYTES <= each <= _LARGEST_PART_OF_S3
    assert -(-num_bytes // each) <= _MOST_PARTS_OF_S3


def test_parts_grow_only_where_they_have_to() -> None:
    assert part_bytes(0) == part_bytes(70 << 30) == PART_BYTES
    assert part_bytes(78 << 30) > PART_BYTES
    assert part_bytes(5 << 40) < 1 << 30, "two of them are in memory"


def test_a_longer_part_has_as_much_longer_to_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.backup").write_bytes(b"axon")
    server, seen = s3.shared_server(), list[float]()

    def opened(*given: Any, request_s: float, **named: Any) -> Any:
        seen.append(request_s)
        return open_bucket(*given, request_s=request_s, **named)

    monkeypatch.setattr(uploading, "open_bucket", opened)
    bucket = server.new_bucket()
    upload(tmp_path / "one.backup", f"s3://{bucket}", endpoint=server.url)
    monkeypatch.setattr(uploading, "part_bytes", lambda _: 3 * PART_BYTES)
    upload(tmp_path / "one.backup", f"s3://{bucket}", endpoint=server.url)
    assert seen == [REQUEST_S, 3 * REQUEST_S]


def test_a_refusal_names_the_backups_the_rights_that_they_need_and_a_role(tmp_path: Path) -> None:
    path = tmp_path / "one.backup"
    path.write_bytes(b"axon")
    with _refusing() as endpoint, pytest.raises(ServiceRefuses) as refused:
        upload(path, "s3://backups/nightly", endpoint=endpoint)
    said = refused.value.message
    assert "the backups at s3://backups/nightly/" in said
    assert "the role of this machine or pod" in said
    assert "put objects and abort uploads" in said
    assert "files" not in said
    assert "delete" not in said


def test_a_bucket_that_does_not_answer_is_that_of_the_backups(tmp_path: Path) -> None:
    path = tmp_path / "one.backup"
    path.write_bytes(b"axon")
    with pytest.raises(DependencyDown, match="the backups at s3://backups/ cannot be reached"):
        upload(path, "s3://backups", endpoint=f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file")])
def test_what_is_wrong_with_the_local_file_is_not_said_of_the_bucket(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one that has vanished since it was looked for."""
    path = tmp_path / "one.backup"
    path.write_bytes(b"axon")
    endpoint = s3.shared_server().url  # before files cannot be opened: it may start only now

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(Misconfigured, match=rf"one\.backup cannot be read: {error.strerror}") as refused:
        upload(path, "s3://not-there/nightly", endpoint=endpoint)
    assert "bucket" not in refused.value.message


def test_a_folder_that_may_not_be_searched_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", fails)
    with pytest.raises(Misconfigured, match=r"one\.backup cannot be read: Permission denied"):
        upload(tmp_path / "one.backup", "s3://not-there/nightly")


def test_without_the_package_the_extra_is_named_for_backups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.backup").write_bytes(b"axon")
    real: Any = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("obstore"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Misconfigured, match=r"bucket for backups .*axon-serving\[fetch\]"):
        upload(tmp_path / "one.backup", "s3://backups/nightly")


def test_what_is_no_bucket_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"one\.backup is no file"):
        upload(tmp_path / "one.backup", "s3://backups/nightly")
    (tmp_path / "one.backup").write_bytes(b"axon")
    for url in ("/backups", "https://backups/nightly"):
        with pytest.raises(Misconfigured, match="The URL of the bucket does not begin with s3://"):
            upload(tmp_path / "one.backup", url)
    with pytest.raises(Misconfigured, match="The URL of the bucket names no bucket"):
        upload(tmp_path / "one.backup", "s3://")
    with pytest.raises(Misconfigured, match="The URL of the bucket is wrong: 'b' is no name of a bucket"):
        upload(tmp_path / "one.backup", "s3://b/axon")


def test_only_a_whole_archive_is_sent_and_is_looked_at_before_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in s3.CREDENTIALS:
        monkeypatch.delenv(name)
    path = tmp_path / "one.backup"
    whole = _archive()
    wrong = whole.replace(b'"axon"', b'"oxan"', 1)
    for content, said in (
        (b"", "no archive"),
        (b"axon" * 1000, "no archive"),
        (whole[:700], "no end"),
        (whole[: whole.index(b"manifest.json")], "no end"),
        (whole[: whole.index(b"manifest.sha256")], "no end"),
        (wrong, "its manifest is damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=rf"one\.backup is not sent: .*{said}"):
            upload_backup(path, "s3://backups/nightly")
    path.write_bytes(whole)
    require_archive(path)
    with pytest.raises(Misconfigured, match=r"cannot be read"):
        upload_backup(tmp_path / "none.backup", "s3://backups/nightly")


def _archive() -> bytes:
    """A small archive of one table's part."""
    file = io.BytesIO()
    writer = ArchiveWriter(file, at=0.0)
    writer.add("tables/keys/000000.rows.gz", b"rows" * 500)
    manifest = Manifest(
        axon="1.0",
        database="sqlite",
        revision="0001",
        created_at=0.0,
        num_unfinished=0,
        tables=(),
        files=FilesFacts(included=True),
        pepper=None,
        parts=tuple(writer.parts),
    )
    writer.finish(manifest)
    return file.getvalue()


@contextmanager
def _refusing() -> Iterator[str]:
    """An S3 server that knows nobody."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
