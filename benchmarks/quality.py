"""How close the int8 kernels come to float32 on a fixed text, beside bfloat16. No server, no sampling.

python -m benchmarks.quality                  prints a table that grows window by window, and one JSON line last
python -m benchmarks.quality --windows 4      a part of the text only

The text is 20 windows of 1,024 tokens: 2 of the Apache licence, 8 of Python's language reference as its own help has
it, 10 of standard library sources. The reference differs a little between releases of Python, so the text's digest is
printed: figures of one digest can be compared. Each window is computed from position 0, and every position counts.

float32 is a plain dense forward pass in torch. bfloat16 is the same pass with weights, products (summed in float32) and
every operation's result rounded to bfloat16, which is what a machine with such products computes; processors without
them take minutes for a window. int8 is what serves: the native kernels, KV cache included.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402
import torch  # noqa: E402

from axon.engine.load.architecture import Architecture, read_architecture  # noqa: E402
from axon.engine.load.weights import Weights  # noqa: E402
from axon.engine.native.build import GROUP_SIZE  # noqa: E402
from axon.engine.native.library import BLOCK_SIZE, kernel_id  # noqa: E402
from axon.engine.native.model import NativeModel, Rows, rope_table  # noqa: E402
from axon.engine.native.packed_weights import ensure_packed  # noqa: E402
from benchmarks.measures.agreement import WINDOW_TOKENS, Logits, compare, digest_of, windows  # noqa: E402

MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
CHUNK_TOKENS = 256


class Dense:
    """A Llama without cache or batch; ``keep`` rounds what every operation gives."""

    def __init__(self, architecture: Architecture, keep: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._shape = architecture
        self._keep = keep
        with Weights(MODEL_DIR, torch.float32) as weights:
            self._embedding = keep(weights.take("model.embed_tokens.weight"))
            self._norm = keep(weights.take("model.norm.weight"))
            self._layers = [
                {
                    name: keep(weights.take(f"model.layers.{index}.{name}.weight"))
                    for name in (
                        *("input_layernorm", "post_attention_layernorm"),
                        *(f"self_attn.{each}_proj" for each in "qkvo"),
                        *(f"mlp.{each}_proj" for each in ("gate", "up", "down")),
                    )
                }
                for index in range(architecture.num_layers)
            ]
        cos, sin = rope_table(architecture.rope, architecture.head_dim, WINDOW_TOKENS)
        self._cos, self._sin = (keep(torch.from_numpy(table))[:, None] for table in (cos, sin))

    @torch.inference_mode()
    def __call__(self, token_ids: list[int]) -> torch.Tensor:
        keep, hidden = self._keep, self._embedding[torch.tensor(token_ids)]
        for layer in self._layers:
            hidden = keep(hidden + self._attend(layer, self._normalise(hidden, layer["input_layernorm"])))
            rows = self._normalise(hidden, layer["post_attention_layernorm"])
            gate, up = (keep(rows @ layer[f"mlp.{name}_proj"].T) for name in ("gate", "up"))
            inner = keep(keep(torch.nn.functional.silu(gate)) * up)
            hidden = keep(hidden + keep(inner @ layer["mlp.down_proj"].T))
        return keep(self._normalise(hidden, self._norm) @ self._embedding.T)

    def _attend(self, layer: dict[str, torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
        keep, shape, count = self._keep, self._shape, len(rows)
        queries, keys, values = (
            keep(rows @ layer[f"self_attn.{each}_proj"].T).view(count, -1, shape.head_dim) for each in "qkv"
        )
        queries, keys = self._turn(queries), self._turn(keys)
        keys, values = (each.repeat_interleave(shape.group_size, 1).transpose(0, 1) for each in (keys, values))
        hidden = torch.full((count, count), float("-inf")).triu(1)
        scores = queries.transpose(0, 1) @ keys.transpose(1, 2) * shape.head_dim**-0.5 + hidden
        seen = keep(keep(torch.softmax(scores, -1)) @ values)
        return keep(seen.transpose(0, 1).reshape(count, -1) @ layer["self_attn.o_proj"].T)

    def _turn(self, heads: torch.Tensor) -> torch.Tensor:
        keep, (first, second) = self._keep, heads.chunk(2, -1)
        cos, sin = self._cos[: len(heads)], self._sin[: len(heads)]
        turned = (keep(first * cos) - keep(second * sin), keep(second * cos) + keep(first * sin))
        return torch.cat([keep(each) for each in turned], -1)

    def _normalise(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt((hidden * hidden).mean(-1, keepdim=True) + self._shape.rms_norm_eps)
        return self._keep(self._keep(hidden * scale) * weight)


class Native:
    """The int8 kernels, in chunks over one sequence's blocks."""

    def __init__(self, architecture: Architecture, threads: int) -> None:
        self._vocab_size = architecture.vocab_size
        self._model = NativeModel(
            architecture,
            ensure_packed(architecture, MODEL_DIR, GROUP_SIZE),
            num_blocks=WINDOW_TOKENS // BLOCK_SIZE,
            threads=threads,
            max_model_len=WINDOW_TOKENS,
        )

    def __call__(self, token_ids: list[int]) -> torch.Tensor:
        logits = np.empty((len(token_ids), self._vocab_size), np.float32)
        for first in range(0, len(token_ids), CHUNK_TOKENS):
            chunk = token_ids[first : first + CHUNK_TOKENS]
            rows = Rows(
                tokens=np.array(chunk, np.int32),
                positions=np.arange(first, first + len(chunk), dtype=np.int32),
                span_starts=np.array([0, len(chunk)], np.int32),
                block_ids=np.arange(WINDOW_TOKENS // BLOCK_SIZE, dtype=np.int32),
                table_starts=np.array([0, WINDOW_TOKENS // BLOCK_SIZE], np.int32),
                outputs=np.arange(len(chunk), dtype=np.int32),
            )
            self._model.step(rows, logits[first : first + len(chunk)])
        return torch.from_numpy(logits)


def rounded(values: torch.Tensor) -> torch.Tensor:
    return values.bfloat16().float()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=0, help="how many; 0 is all")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    chosen = windows(MODEL_DIR)[: options.windows or None]
    digest = digest_of(chosen)
    print(f"{' '.join(sys.argv)}\n{platform.machine()}, Python {platform.python_version()}, {kernel_id()}")
    print(f"{sum(map(len, chosen))} tokens, digest {digest}")
    architecture = read_architecture(MODEL_DIR)
    arithmetics: dict[str, Logits] = {
        "float32": Dense(architecture, lambda values: values),
        "bfloat16": Dense(architecture, rounded),
        "int8": Native(architecture, options.threads),
    }
    figures: dict[str, dict[str, float]] = {}
    for number, figures in enumerate(compare(arithmetics, chosen), start=1):
        for name in ("bfloat16", "int8"):
            each = figures[name]
            print(
                f"{number:3} windows  {name:8}  top-1 {each['top1']:.4f} ± {each['top1_standard_error']:.4f}"
                f"  KL {each['mean_kl']:.5f}  perplexity {each['perplexity_percent']:+.2f} %",
                flush=True,
            )
    print(
        json.dumps(
            {
                "benchmark": "quality",
                "kernel": kernel_id(),
                "python": platform.python_version(),
                "tokens": sum(map(len, chosen)),
                "digest": digest,
                "arithmetics": figures,
            }
        )
    )


if __name__ == "__main__":
    main()
