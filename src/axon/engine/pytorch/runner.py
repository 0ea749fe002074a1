"""Runs a batch in PyTorch: forward pass, then one token for each draw. Knows no scheduler."""

from functools import partial

import torch

from axon.engine.batch import Batch, Drawn
from axon.engine.parallel.group import Alone, Group
from axon.engine.phases import enter
from axon.engine.pytorch.attention import Attention
from axon.engine.pytorch.llama import Llama
from axon.engine.pytorch.low_rank import LowRankAdapters
from axon.engine.pytorch.tiles import proven_sizes, tile
from axon.engine.sample.sampler import sample


class ModelRunner:
    """Holds the model and its attention; pads the rows of a step once to whole tiles."""

    @torch.inference_mode()
    def __init__(
        self,
        model: Llama,
        attention: Attention,
        group: Group | None = None,
        adapters: LowRankAdapters | None = None,
    ) -> None:
        self._model, self._adapters = model, adapters
        self._attention = attention
        self._sizes = (group or Alone()).common(proven_sizes(model.linears))

    @torch.inference_mode()
    def run(self, batch: Batch) -> list[Drawn]:
        """Computes the batch's tokens and samples one token for each draw."""
        logits = self.compute(batch)
        enter("sample")
        return [] if logits is None else sample(logits.float(), batch.draws)

    @torch.inference_mode()
    def compute(self, batch: Batch) -> torch.Tensor | None:
        """The logits of the rows that have a draw; None if there are none."""
        hidden = self._forward(batch)
        return self._logits(batch, hidden) if batch.draws else None

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
            partial(self._attention, plan=self._attention.plan(batch, num_rows)),
            self._adapters.of(batch) if self._adapters is not None else None,
        )

    def _logits(self, batch: Batch, hidden: torch.Tensor) -> torch.Tensor:
        """Computes only the rows that have a draw, because the output head is a large product."""
        rows = batch.output_rows
        tiling = tile(len(rows), self._sizes)
        padded = rows + [rows[0]] * (sum(tiling) - len(rows))
        return self._model.logits(hidden[padded], tiling)[: len(rows)]
