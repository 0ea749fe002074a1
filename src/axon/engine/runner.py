"""Runs a batch on tensors: forward pass, then one token for each draw. Knows no scheduler."""

import torch

from axon.engine.attention import Attention
from axon.engine.batch import Batch, Drawn
from axon.engine.models.llama import Llama
from axon.engine.sampler import sample
from axon.engine.tiles import proven_sizes, tile


class ModelRunner:
    """Holds the model and its attention; the rows of a step are padded once to whole tiles."""

    @torch.inference_mode()
    def __init__(self, model: Llama, attention: Attention) -> None:
        self._model = model
        self._attention = attention
        self._sizes = proven_sizes(model.linears)

    @torch.inference_mode()
    def run(self, batch: Batch) -> list[Drawn]:
        """Computes the batch's tokens and samples behind the spans that have a draw."""
        hidden = self._forward(batch)
        if not batch.draws:
            return []
        return sample(self._logits(batch, hidden).float(), batch.draws)

    def _forward(self, batch: Batch) -> torch.Tensor:
        tiling = tile(batch.num_tokens, self._sizes)
        num_rows = sum(tiling)
        padding = [0] * (num_rows - batch.num_tokens)
        token_ids = [token_id for span in batch.spans for token_id in span.token_ids]
        positions = [position for span in batch.spans for position in range(span.first, span.end)]
        return self._model.forward(
            torch.tensor(token_ids + padding),
            torch.tensor(positions + padding),
            tiling,
            self._attention,
            self._attention.plan(batch, num_rows),
        )

    def _logits(self, batch: Batch, hidden: torch.Tensor) -> torch.Tensor:
        """The head is a large product: only the rows that a token is drawn behind go through it."""
        rows = batch.output_rows
        tiling = tile(len(rows), self._sizes)
        padded = rows + [rows[0]] * (sum(tiling) - len(rows))
        return self._model.logits(hidden[padded], tiling)[: len(rows)]
