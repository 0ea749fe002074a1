"""What steps with LoRA adapters read beside their other inputs: the rows of each adapter. Launches nothing."""

from collections.abc import Sequence

import torch

from axon.engine.batch import Span
from axon.engine.cuda import tuning
from axon.engine.cuda.adapters.adapter_pages import CudaAdapters
from axon.engine.cuda.adapters.adapter_rows import MOST_PAGES, chunked_rows, decoded_rows, no_chunked_rows, pages_needed
from axon.engine.cuda.step.step_arrays import Array, Chunks, layout
from axon.engine.cuda.step.transfer import send


class AdaptedInputs:
    """The arrays of decodes at a fixed place on the device, so that a CUDA graph can read them; those of chunks."""

    def __init__(self, adapters: CudaAdapters, max_rows: int) -> None:
        self._adapters, self._max_rows = adapters, max_rows
        is_exact = adapters.pool.dtype == torch.float32
        self._tile = tuning.low_rank(chunks=False, is_exact=is_exact).rows
        self._chunk_tile = tuning.low_rank(chunks=True, is_exact=is_exact).rows
        self._words: dict[int, torch.Tensor] = {}
        self._inputs: dict[int, dict[str, torch.Tensor]] = {}
        device = adapters.pool.device
        for num_pages in (1, MOST_PAGES):
            arrays = decoded_rows([], {}, num_pages, self._tile, max_rows)
            self._words[num_pages] = torch.zeros(layout(arrays)[1], dtype=torch.int32, device=device)
            self._inputs[num_pages] = send(arrays, device, self._words[num_pages])

    def num_pages(self, spans: Sequence[Span]) -> int:
        """Pages of an adapter for which the step needs room; 0 if no row has an adapter."""
        return pages_needed(spans, self._adapters.pages)

    def send(self, spans: Sequence[Span], num_pages: int) -> None:
        """Sends the rows of a step of decodes."""
        arrays = decoded_rows(spans, self._adapters.pages, num_pages, self._tile, self._max_rows)
        send(arrays, self._words[num_pages].device, self._words[num_pages])

    def decodes(self, size: int, num_pages: int) -> dict[str, torch.Tensor]:
        """The inputs of a step of so many decodes."""
        return {name: each[:size] for name, each in self._inputs[num_pages].items()}

    def chunks(self, spans: Sequence[Span]) -> dict[str, Array]:
        """The arrays of a step with prompt chunks."""
        return chunked_rows(spans, self._adapters.pages, self.num_pages(spans), self._chunk_tile)

    def chunk_shape(self, size: int, num_pages: int, queries_per_tile: int) -> Chunks:
        """The shapes of a CUDA graph with prompt chunks and adapters."""
        return Chunks(size, queries_per_tile, no_chunked_rows(size, Chunks.MAX_SPANS, num_pages, self._chunk_tile))
