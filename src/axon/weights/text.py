"""A model's tokenizer and template without its weights, for gateways. Knows neither tokenizer nor template.

Of a folder these are a few small files. A .gguf file has both in its header: that much is fetched, a few MB, and the
rest of the file is a hole that takes no space on disk.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from axon.errors import FetchFailed, FetchInterrupted
from axon.weights import locks
from axon.weights.gguf_header import header_bytes
from axon.weights.names import TEXT_FILES, check_digest, choose
from axon.weights.source import Source, StatedFile, file_of
from axon.weights.space import disk_errors

_MAX_TEXT_BYTES = 256 << 20
"""More than any tokenizer and header has: a file that states more is refused."""
Convert = Callable[[Path, Path], None]
"""Writes tokenizer and template of a .gguf file (the first argument) into a folder (the second)."""


async def fetch_text(source: Source, models_dir: Path, digest: str, *, convert: Convert, timeout_s: float) -> Path:
    """The folder of a version's tokenizer and template; fetched once, then kept under the version's digest."""
    check_digest(digest)
    root = models_dir / "by-digest" / "text"
    with disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        kept = root / digest
        if not kept.is_dir():
            async with locks.turn(root / f"{digest}.lock", lambda: None):
                if not kept.is_dir():
                    await _fetch_whole(source, kept, convert, timeout_s)
        return kept


def drop_text(folder: Path) -> None:
    """Removes a fetched text that is not what it should be; whoever reads it meanwhile finds it whole or not at all."""
    try:
        gone = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}")
        os.rename(folder, gone)
    except OSError:  # another process was faster, or the folder cannot be written
        return
    shutil.rmtree(gone, ignore_errors=True)


async def _fetch_whole(source: Source, kept: Path, convert: Convert, timeout_s: float) -> None:
    """The folder appears whole or not at all."""
    draft = kept.with_name(f".{kept.name}")
    shutil.rmtree(draft, ignore_errors=True)  # left by a process that was killed
    os.mkdir(draft)
    try:
        await _fetch(source, draft, convert, timeout_s)
        os.rename(draft, kept)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


async def _fetch(source: Source, folder: Path, convert: Convert, timeout_s: float) -> None:
    chosen = choose((await source.listing()).files, file=file_of(source.location), where=source.location.text)
    models = sorted((file for file in chosen.files if file.name.endswith(".gguf")), key=lambda file: file.name)
    for file in chosen.files if not models else ():
        if file.name in TEXT_FILES:
            _write(folder / file.name, await _read(source, file, _whole(file.size), timeout_s), file.size)
    if models:
        holes = folder / ".gguf"
        for file in models:
            _write(holes / file.name, await _read(source, file, header_bytes, timeout_s), file.size)
        await asyncio.to_thread(convert, holes / models[0].name, folder)
        shutil.rmtree(holes)


def _write(path: Path, content: bytes, size: int) -> None:
    """Writes a file of this size; what the content does not fill is a hole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.truncate(size)


def _whole(size: int) -> Callable[[bytes], int | None]:
    return lambda data: size if len(data) >= size else None


async def _read(source: Source, file: StatedFile, length: Callable[[bytes], int | None], timeout_s: float) -> bytes:
    """The file's first bytes, as many as ``length`` says when it can tell; asked when their number has doubled."""
    data, asked = bytearray(), 0
    try:
        async with aclosing(source.read(file, 0)) as chunks:
            while True:
                async with asyncio.timeout(timeout_s):
                    chunk = await anext(chunks, None)
                data += chunk or b""
                if chunk is None or len(data) >= max(2 * asked, 1):
                    asked = len(data)
                    # In a thread: a header has hundreds of thousands of values.
                    if (found := await asyncio.to_thread(length, bytes(data))) is not None:
                        return bytes(data[:found])
                if chunk is None or len(data) > _MAX_TEXT_BYTES:
                    raise FetchFailed(f"{file.name} of {source.location.text} is cut short, or no model's file.")
    except TimeoutError:
        raise FetchInterrupted(f"No byte of {file.name} came for {timeout_s:g} s.") from None
    except ValueError as error:
        raise FetchFailed(f"{file.name} of {source.location.text} cannot be read as GGUF: {error}.") from error
