"""A server that speaks S3, of other people's making (moto), in a process and an environment of its own."""

import atexit
import secrets
import tempfile
from pathlib import Path

import httpx

from tests.conformance.clients import environment_of
from tests.services.keeper import shared
from tests.services.process import ServerProcess, free_port, listening, private_folder

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "a-test",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-a-test",
    "AWS_REGION": "us-east-1",
}
"""What it takes: anything at all."""


class S3Server:
    """One server, whose objects are in its memory."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        python = environment_of("moto") / "bin" / "python"
        command = [str(python), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = ServerProcess(command, private_folder(folder), as_owner=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process.start(lambda: listening(self.port), timeout_s=120.0)

    def kill(self) -> None:
        self._process.kill()

    def new_bucket(self) -> str:
        """The name of an empty bucket."""
        name = f"axon-{secrets.token_hex(4)}"
        httpx.put(f"{self.url}/{name}", timeout=30).raise_for_status()
        return name

    def num_uploads(self, bucket: str) -> int:
        """Multipart uploads that have begun and not ended."""
        listed = httpx.get(f"{self.url}/{bucket}?uploads", timeout=30)
        return listed.raise_for_status().text.count("<UploadId>")


@shared
def shared_server() -> S3Server:
    """Started by the first test that needs it, removed at the end of the run; each test has a bucket of its own."""
    folder = tempfile.TemporaryDirectory(prefix="axon-s3-")
    server = S3Server(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(server.kill)
    server.start()
    return server
