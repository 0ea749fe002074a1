"""Small random models that give vectors, in folders as sentence-transformers writes them. Needs no test runner."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from axon.engine.load.encoder import read_encoder

SIZES = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
CONFIG = {
    "model_type": "bert",
    **SIZES,
    "num_attention_heads": 4,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}


DECODER = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
}


def made(folder: Path, *, prefix: str = "", modules: bool = True, pooling: str = "mean_tokens", **config: Any) -> Path:
    """Writes a model folder as sentence-transformers would."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    if modules:
        write_modules(folder, pooling=pooling)
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 36}))
    generator = torch.Generator().manual_seed(1)
    shapes = read_encoder(folder).tensor_shapes()
    save_file(
        {f"{prefix}{name}": torch.randn(shape, generator=generator) / 4 for name, shape in shapes.items()},
        folder / "model.safetensors",
    )
    return folder


def write_modules(folder: Path, *, pooling: str) -> None:
    """Writes the files by which sentence-transformers pools and normalises."""
    kinds = ["Transformer", "Pooling", "Normalize"]
    listed = [{"type": f"sentence_transformers.models.{kind}", "path": ""} for kind in kinds]
    listed[1]["path"] = "1_Pooling"
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))


def classifier(folder: Path, kind: str, *, num_labels: int = 3, **config: Any) -> Any:
    """Saves a random classifier of transformers with this prefix (``Bert``, ``Roberta``, ``XLMRoberta``)."""
    import transformers

    more = {"pad_token_id": 1} if kind != "Bert" else {}
    types = 2 if kind == "Bert" else 1
    sizes = {**CONFIG, "type_vocab_size": types, "num_labels": num_labels, **more, **config}
    del sizes["model_type"]
    torch.manual_seed(7)
    model = getattr(transformers, f"{kind}ForSequenceClassification")(
        getattr(transformers, f"{kind}Config")(**sizes)
    ).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(folder)
    return model


def decoder(folder: Path, kind: str, *, bare: bool = True, pooling: str = "lasttoken", **config: Any) -> Any:
    """Saves a random decoder of transformers with a pooling beside it, without a head if ``bare``; returns it."""
    import transformers

    torch.manual_seed(7)
    name = f"{kind}Model" if bare else f"{kind}ForCausalLM"
    sizes = {each: size for each, size in {**DECODER, **config}.items() if kind != "Llama" or each != "sliding_window"}
    model = getattr(transformers, name)(getattr(transformers, f"{kind}Config")(**sizes)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(folder)
    write_modules(folder, pooling=pooling)
    return model


def write_tokenizer(folder: Path, single: str, pair: str | None = None) -> None:
    """Writes a tokenizer of the words ``w3`` to ``w49``, with the special tokens of these templates around texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    special = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}
    tokenizer = Tokenizer(models.WordLevel({**special, **{f"w{at}": at for at in range(3, 50)}}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    named = [(name, special[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=named)
    tokenizer.save(str(folder / "tokenizer.json"))
