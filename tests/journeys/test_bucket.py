"""Files and batches of a server whose bytes are in a bucket: uploaded part by part, answered, read and deleted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.server import Server, running
from tests.journeys.test_batches import chat_line, client_of, content, jsonl, submit, wait_ended
from tests.journeys.test_uploads import resident_bytes
from tests.services import s3


@pytest.fixture(scope="module")
def bucket() -> str:
    return s3.shared_server().new_bucket()


@pytest.fixture(scope="module")
def server(bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**s3.CREDENTIALS, "AWS_ENDPOINT_URL": s3.shared_server().url}.items():
            patch.setenv(name, value)
        place = {"batches_files_dir": f"s3://{bucket}/axon"}
        with running(tmp_path_factory.mktemp("bucket") / "data", engine_kind="echo", **place) as server:
            yield server


def test_a_batch_reads_and_writes_its_files_in_the_bucket(server: Server) -> None:
    with client_of(server) as client:
        batch = wait_ended(client, submit(client, [chat_line(number) for number in range(20)]))
        assert batch.status == "completed", batch
        found = content(client, batch.output_file_id)
        assert [line["custom_id"] for line in found] == [f"line-{number}" for number in range(20)]
        for file_id in (batch.input_file_id, batch.output_file_id):
            assert client.files.delete(file_id).deleted
    assert not (server.data_dir / "files").exists()


def test_a_large_file_passes_through_and_is_not_held_in_memory(server: Server, bucket: str) -> None:
    line = jsonl([chat_line(0)])
    data = line * ((64 << 20) // len(line))
    with client_of(server) as client:
        client.files.create(file=("small.jsonl", line), purpose="batch")
        before = resident_bytes(server)
        file = client.files.create(file=("large.jsonl", data), purpose="batch")
        assert client.files.content(file.id).read() == data
        assert resident_bytes(server) - before < 48 << 20
        client.files.delete(file.id)
    assert s3.shared_server().num_uploads(bucket) == 0


def test_a_refused_upload_leaves_no_object(server: Server) -> None:
    line = jsonl([chat_line(0)])
    with server.client() as http:
        before = http.get("/v1/files").json()["data"]
        form = {"purpose": (None, b"fine-tune"), "file": ("a.jsonl", line * ((9 << 20) // len(line)))}
        assert http.post("/v1/files", files=form).status_code == 400
        assert http.get("/v1/files").json()["data"] == before


def test_a_server_whose_bucket_is_not_there_says_so_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**s3.CREDENTIALS, "AWS_ENDPOINT_URL": s3.shared_server().url}.items():
        monkeypatch.setenv(name, value)
    settings = {"engine_kind": "echo", "batches_files_dir": "s3://no-such-bucket"}
    server = Server(tmp_path / "data", **settings)
    ran = server.axon("serve")
    assert ran.returncode != 0
    assert "There is no bucket no-such-bucket" in ran.stderr
