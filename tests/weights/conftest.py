"""A bucket with a small model in it, and how it is reached."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from axon.weights.bucket import BucketSource
from axon.weights.cache import WeightsCache
from axon.weights.config import WeightsConfig
from axon.weights.source import Bucket, parse_source
from tests.weights.object_server import Files, s3_server

QUICK = WeightsConfig(retry_s=0.01, timeout_s=60.0, tries=3)
CHECKPOINT = 128 << 10


def model_files(prefix: str = "models/tiny/", *, seed: int = 1, size: int = 3 << 20) -> dict[str, bytes]:
    """Files as a model folder has them, with random weights."""
    rng = random.Random(seed)
    return {
        f"{prefix}config.json": b'{"model_type": "llama"}',
        f"{prefix}tokenizer.json": b"{}" * 1000,
        f"{prefix}chat_template.jinja": b"{{ messages }}",
        f"{prefix}model-00001-of-00002.safetensors": rng.randbytes(size),
        f"{prefix}model-00002-of-00002.safetensors": rng.randbytes(size // 2 + 7),
        f"{prefix}model.safetensors.index.json": b"{}",
        f"{prefix}empty.json": b"",
    }


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for name in ("HF_TOKEN", "HF_ENDPOINT", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def files() -> Files:
    return Files(model_files())


@pytest.fixture
def endpoint(files: Files) -> Iterator[str]:
    with s3_server(files) as url:
        yield url


def bucket_source(endpoint: str, text: str = "s3://models/tiny") -> BucketSource:
    location = parse_source(text)
    assert isinstance(location, Bucket)
    return BucketSource(location, endpoint=endpoint, timeout_s=60.0)


@pytest.fixture
def cache(tmp_path: Path) -> WeightsCache:
    return WeightsCache(tmp_path, QUICK, checkpoint_bytes=CHECKPOINT)


def same_bytes(folder: Path, content: dict[str, bytes], prefix: str = "models/tiny/") -> bool:
    """Whether the folder has exactly these files, beside its manifest."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "axon-files.json"}
    return found == {name.removeprefix(prefix): data for name, data in content.items() if name.startswith(prefix)}
