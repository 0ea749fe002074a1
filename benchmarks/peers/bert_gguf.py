"""A sentence-transformers folder of a BERT as a GGUF file, for llama.cpp. Runs no model.

python -m benchmarks.peers.bert_gguf FOLDER f32|q8_0 OUT.gguf
"""

import json
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, PoolingType, TokenType
from gguf.quants import quantize

from axon.engine.load.arrays import Arrays
from axon.engine.load.encoder import Encoder, read_encoder, tensor_prefix

KINDS = {
    "f32": (GGMLQuantizationType.F32, LlamaFileType.ALL_F32),
    "f16": (GGMLQuantizationType.F16, LlamaFileType.MOSTLY_F16),
    "q8_0": (GGMLQuantizationType.Q8_0, LlamaFileType.MOSTLY_Q8_0),
}
_POOLINGS = {"mean": PoolingType.MEAN, "cls": PoolingType.CLS, "lasttoken": PoolingType.LAST}
_NAMES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.LayerNorm": "token_embd_norm",
}
_LAYER_NAMES = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_SPECIAL = {"[UNK]": "unk", "[SEP]": "sep", "[PAD]": "pad", "[CLS]": "bos", "[MASK]": "mask"}


def write_bert(model_dir: Path, kind: str, target: Path) -> None:
    """Writes the folder's encoder with its matrices in the named form."""
    encoder, (own, file_type) = read_encoder(model_dir), KINDS[kind]
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(target.name + ".draft")
    writer = GGUFWriter(draft, "bert")
    _add_shape(writer, encoder, file_type)
    _add_vocabulary(writer, model_dir, encoder)
    arrays = Arrays(model_dir, tensor_prefix(model_dir))
    for name in encoder.tensor_shapes():
        values = arrays.take(name)
        is_matrix = values.ndim > 1 and not name.startswith(("embeddings.position", "embeddings.token_type"))
        form = own if is_matrix else GGMLQuantizationType.F32
        writer.add_tensor(_named(name), quantize(np.ascontiguousarray(values), form), raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    draft.rename(target)


def _add_shape(writer: GGUFWriter, encoder: Encoder, file_type: LlamaFileType) -> None:
    writer.add_context_length(encoder.num_positions)
    writer.add_embedding_length(encoder.hidden_size)
    writer.add_feed_forward_length(encoder.intermediate_size)
    writer.add_block_count(encoder.num_layers)
    writer.add_head_count(encoder.num_heads)
    writer.add_layer_norm_eps(encoder.norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(_POOLINGS[encoder.pooling])
    writer.add_file_type(file_type)


def _add_vocabulary(writer: GGUFWriter, model_dir: Path, encoder: Encoder) -> None:
    """WordPiece as llama.cpp has it: a word's first piece begins with a low line, the others with nothing."""
    words: dict[str, int] = json.loads((model_dir / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    ordered = sorted(words, key=words.__getitem__)
    special = [word.startswith("[") and word.endswith("]") and len(word) > 2 for word in ordered]
    pieces = [
        word if is_special else word[2:] if word.startswith("##") else f"\u2581{word}"
        for word, is_special in zip(ordered, special, strict=True)
    ]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_type_count(encoder.num_types)
    writer.add_token_list(pieces)
    writer.add_token_types([TokenType.CONTROL if each else TokenType.NORMAL for each in special])
    for word, name in _SPECIAL.items():
        getattr(writer, f"add_{name}_token_id")(words[word])


def _named(name: str) -> str:
    """llama.cpp's name of a tensor."""
    stem, _, kind = name.rpartition(".")
    if stem in _NAMES:
        return f"{_NAMES[stem]}.{kind}"
    _, _, index, rest = stem.split(".", 3)
    return f"blk.{index}.{_LAYER_NAMES[rest]}.{kind}"


if __name__ == "__main__":
    write_bert(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
