"""The default model's GGUF in other precisions, for engines that are quicker with them. Runs no model.

python -m benchmarks.peers.weights q8_0 OUT.gguf
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
from gguf.quants import dequantize, quantize

from axon.engine.load.convert.gguf import default_gguf

_KINDS = {
    "q8_0": (GGMLQuantizationType.Q8_0, LlamaFileType.MOSTLY_Q8_0),
    "f16": (GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
}
PACKAGED = "q4_1"
"""The form that the package has: Q4_1 matrices, a Q8_0 embedding."""


def write_weights(name: str, target: Path, source: Path | None = None) -> None:
    """Writes ``source``, by default the packaged file, with its matrices rounded to the named form."""
    source = source or default_gguf()
    target.parent.mkdir(parents=True, exist_ok=True)
    if name == PACKAGED:
        target.unlink(missing_ok=True)
        target.symlink_to(source.resolve())
        return
    draft = target.with_name(target.name + ".draft")
    _convert(GGUFReader(source), draft, *_KINDS[name])
    draft.rename(target)


def _convert(reader: Any, path: Path, kind: GGMLQuantizationType, file_type: LlamaFileType) -> None:
    writer = GGUFWriter(path, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        value = int(file_type) if field.name == "general.file_type" else field.contents()
        sub_type = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, value, field.types[0], sub_type)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        own = kind if values.ndim > 1 else GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, quantize(values, own), raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write_weights(sys.argv[1], Path(sys.argv[2]))
