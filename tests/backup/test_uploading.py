"""A backup is copied into a bucket whole, and a bucket that is not there or is named wrongly is told by name."""

from pathlib import Path

import obstore
import pytest

from axon.adapters.backup.uploading import upload
from axon.adapters.files.bucket import location_of, open_bucket
from axon.errors import Misconfigured, ServiceRefuses
from tests.services import s3


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
    place = upload(path, f"s3://{bucket}/nightly", endpoint=server.url)
    assert place == f"s3://{bucket}/nightly/{path.name}"
    store = open_bucket(location_of(f"s3://{bucket}"), endpoint=server.url)
    assert bytes(obstore.get(store, f"nightly/{path.name}").bytes()) == path.read_bytes()
    assert server.num_uploads(bucket) == 0


def test_a_bucket_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "one.backup"
    path.write_bytes(b"axon")
    with pytest.raises(ServiceRefuses, match="There is no bucket not-there"):
        upload(path, "s3://not-there/nightly", endpoint=s3.shared_server().url)


def test_what_is_no_bucket_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"one\.backup is no file"):
        upload(tmp_path / "one.backup", "s3://backups/nightly")
    (tmp_path / "one.backup").write_bytes(b"axon")
    for place in ("/backups", "https://backups/nightly"):
        with pytest.raises(Misconfigured, match="The place of a backup is no bucket"):
            upload(tmp_path / "one.backup", place)
    with pytest.raises(Misconfigured, match="The place of a backup names no bucket"):
        upload(tmp_path / "one.backup", "s3://UPPER")
