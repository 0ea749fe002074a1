"""A GGUF file on a GPU: its conversion says there what the same numbers say in bfloat16."""

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from safetensors.torch import load_file, save_file

from axon.engine.engine import Engine
from tests.engine.builders import make_add
from tests.engine.cuda.fp8_ways import CONFIG, emit, gaps


def converted(folder: Path, root: Path) -> Path:
    """The model as a Q8_0 file, converted; without the library as a folder of float32, which a conversion writes."""
    if find_spec("gguf") is None:
        tensors = load_file(folder / "model.safetensors")
        (root / "made").mkdir()
        save_file({name: each.float() for name, each in tensors.items()}, root / "made" / "model.safetensors")
        (root / "made" / "config.json").write_text((folder / "config.json").read_text())
        return root / "made"
    from gguf import GGMLQuantizationType

    from axon.engine.load.convert.gguf import convert_gguf
    from tests.engine.load.convert.gguf_files import write_gguf

    convert_gguf(write_gguf(root / "m.gguf", folder, kind=GGMLQuantizationType.Q8_0), root / "made")
    return root / "made"


def compare(folder: Path, on_gpu: Callable[..., Engine]) -> None:
    adds = [make_add(str(index), prompt=20 + index, max_tokens=1, logprobs=8) for index in range(16)]
    with tempfile.TemporaryDirectory() as root:
        made = converted(folder, Path(root))
        exact = emit(on_gpu(made, dtype="float32", **CONFIG), adds)
        engine = on_gpu(made, dtype="auto", **CONFIG)
        assert engine.ready().kernel == "cuda-bfloat16"
        same, gap = gaps(emit(engine, adds), exact)
        print(f"  top-1 {same:.2f}, mean logprob difference {gap:.4f}")
        assert gap < 0.2
