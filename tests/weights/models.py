"""A tiny model with tokenizer and template, as a folder and as a .gguf file."""

from pathlib import Path

from axon.engine.load.convert.gguf import convert_text
from tests.engine.builders import make_tiny_llama
from tests.engine.load.convert.gguf_files import write_gguf


def make_model(folder: Path) -> Path:
    """Writes the folder, and a .gguf file of the same name beside it; returns that file."""
    make_tiny_llama(folder)
    gguf = folder.with_name(f"{folder.name}.gguf")
    write_gguf(gguf, folder)
    convert_text(gguf, folder)
    return gguf
