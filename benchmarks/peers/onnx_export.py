"""A BERT's graph as ONNX, with the runtime's own fusions, and once more in its dynamic int8. Run by the python of the
virtual environment of sentence-transformers and ONNX Runtime; imports nothing of this repository.

python onnx_export.py FOLDER OUT_FOLDER
"""

import importlib
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    source, target = sys.argv[1], Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    model = transformers.AutoModel.from_pretrained(source, attn_implementation="eager").eval()
    model.requires_grad_(False)

    class Hidden(torch.nn.Module):  # type: ignore[misc]
        """The last hidden states alone."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)[0]

    ids = torch.ones(2, 8, dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "length"} for name in [*names, "hidden"]}
    plain, fused, small = (str(target / name) for name in ("plain.onnx", "float32.onnx", "int8.onnx"))
    torch.onnx.export(
        Hidden(),
        (ids, ids, torch.zeros_like(ids)),
        plain,
        input_names=names,
        output_names=["hidden"],
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )
    optimizer: Any = importlib.import_module("onnxruntime.transformers.optimizer")
    heads, hidden = model.config.num_attention_heads, model.config.hidden_size
    optimized = optimizer.optimize_model(plain, model_type="bert", num_heads=heads, hidden_size=hidden, opt_level=1)
    print(optimized.get_fused_operator_statistics())
    optimized.save_model_to_file(fused)
    quantization: Any = importlib.import_module("onnxruntime.quantization")
    onnx: Any = importlib.import_module("onnx")
    options = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # of what fused operators give
    kind = quantization.QuantType.QInt8
    quantization.quantize_dynamic(fused, small, weight_type=kind, per_channel=True, extra_options=options)


if __name__ == "__main__":
    main()
