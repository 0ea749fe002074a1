"""Decoders of the Llama family whose hidden states are pooled to vectors, in PyTorch. Knows no text and no KV blocks.

The rows of all inputs stand one below the other; attention is computed input by input. On a CPU, products are computed
in tiles of proven sizes, so that an input's vector is bitwise the same alone and in any batch.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch.nn import functional

from axon.engine.config import EngineConfig
from axon.engine.encoder.packing import Group, by_length, groups_of, put_back, spans_of
from axon.engine.encoder.pooling import Pool, vectors_of
from axon.engine.load.pooled_decoder import left_out_prefix, read_pooled_decoder
from axon.engine.load.weights import Weights
from axon.engine.pytorch.llama import Llama
from axon.engine.pytorch.tiles import Tiling, proven_sizes, tile
from axon.errors import Misconfigured

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class PooledDecoderEncoder:
    """A Llama, Mistral or Qwen with the pooling of its sentence-transformers configuration; it writes no text."""

    @torch.inference_mode()
    def __init__(self, config: EngineConfig, model_dir: Path) -> None:
        """``config`` names device and dtype: ``auto`` is float32 on a CPU and bfloat16 on a GPU. Raises
        ``Misconfigured``."""
        on_gpu = config.device == "cuda"
        dtype = config.dtype if config.dtype != "auto" else "bfloat16" if on_gpu else "float32"
        if dtype not in _DTYPES or config.tensor_parallel > 1:
            raise Misconfigured(
                "a decoder gives vectors in float32 or bfloat16 on one device: change engine.dtype, remove ranks"
            )
        shape = read_pooled_decoder(model_dir)
        if not on_gpu and config.threads:
            torch.set_num_threads(config.threads)
        self._architecture, self._device = shape.architecture, torch.device("cuda" if on_gpu else "cpu")
        self.max_model_len = min(config.max_model_len or shape.max_model_len, shape.max_model_len)
        self.vocab_size = shape.architecture.vocab_size
        self.kernel = f"pooled-decoder-{self._device.type}-{dtype}"
        with Weights(model_dir, _DTYPES[dtype]) as weights:
            tensors = _Tensors(weights, left_out_prefix(model_dir), self._device)
            self._model = Llama(shape.architecture, tensors, has_head=False)
        self._sizes = () if on_gpu else proven_sizes(self._model.linears)
        self._pool = Pool(shape.pooling, shape.normalizes)

    @torch.inference_mode()
    def encode(self, batch: Sequence[Sequence[int]], second_starts: Sequence[int] = ()) -> list[bytes]:
        """The vectors of the inputs, in order. Inputs of one length share a call of attention."""
        assert not any(second_starts), "a decoder reads no pairs"
        order = by_length(batch)
        lengths = [len(batch[index]) for index in order]
        hidden = self._model.states(self._forward([batch[index] for index in order], lengths))
        return put_back(order, vectors_of(hidden, spans_of(lengths), self._pool))

    def _forward(self, batch: Sequence[Sequence[int]], lengths: list[int]) -> torch.Tensor:
        num_rows = sum(lengths)
        tiling = tile(num_rows, self._sizes) if self._sizes else Tiling((num_rows,))
        padding = [0] * (sum(tiling) - num_rows)
        ids = [token_id for token_ids in batch for token_id in token_ids] + padding
        positions = [at for length in lengths for at in range(length)] + padding
        groups = groups_of(lengths)

        def attend(
            layer: int,
            queries: torch.Tensor,
            keys: torch.Tensor,
            values: torch.Tensor,
            *,
            sinks: torch.Tensor | None = None,
        ) -> torch.Tensor:
            assert sinks is None, "no family that gives vectors has sinks"
            return _attend(queries, keys, values, groups)

        token_ids, places = (torch.tensor(each, device=self._device) for each in (ids, positions))
        return self._model.forward(token_ids, places, tiling, attend)


class _Tensors:
    """A decoder's tensors by a chat model's names, on the device, whatever their folder calls them."""

    def __init__(self, weights: Weights, left_out: str, device: torch.device) -> None:
        self._weights, self._left_out, self._device = weights, left_out, device

    def take(self, name: str) -> torch.Tensor:
        return self._weights.take(name.removeprefix(self._left_out)).to(self._device)

    def take_stacked(self, names: Iterable[str]) -> torch.Tensor:
        return torch.cat([self.take(name) for name in names])


def _attend(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, groups: Sequence[Group]) -> torch.Tensor:
    """Causal attention within each input; the result of padding rows is zeros."""
    seen = queries.new_zeros(queries.shape[0], queries[0].numel())
    for first, count, length in groups:
        rows = slice(first, first + count * length)
        q, k, v = (each[rows].view(count, length, *each.shape[1:]).transpose(1, 2) for each in (queries, keys, values))
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        seen[rows] = found.transpose(1, 2).reshape(count * length, -1)
    return seen
