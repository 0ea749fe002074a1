"""The kernels of LoRA adapters against plain PyTorch. Imports Triton."""

from pathlib import Path

import torch

from axon.engine.batch import Span
from axon.engine.cuda.adapters.adapted_inputs import AdaptedInputs
from axon.engine.cuda.adapters.adapter_pages import RANK, CudaAdapters, Place
from axon.engine.cuda.adapters.adapter_rows import MOST_PAGES, Pages
from axon.engine.cuda.adapters.low_rank import Adapting
from axon.engine.cuda.jit import overlaps
from axon.engine.cuda.reference import adapted
from axon.engine.cuda.rows import Parts
from axon.engine.load.architecture import read_architecture
from tests.engine.cuda.distance import distance

BOUNDS = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 2e-5}
PAGES: Pages = {"one": (5,), "two": (0, 3), "four": (6, 1, 2, 4), "idle": (7,)}


@torch.inference_mode()
def compare(folder: Path, dtype: torch.dtype, device: torch.device) -> None:
    """Each product of a layer, for decodes with several adapters and none, and for chunks."""
    torch.manual_seed(3)
    adapters = CudaAdapters(read_architecture(folder), dtype, device, count=8)
    adapters.pool.copy_(torch.randn(8, adapters.page_size) * 0.1)
    adapters.pages = dict(PAGES)
    inputs = AdaptedInputs(adapters, 48)
    decodes = ["", "one", "two", "one", "", "four", *["two"] * 20]
    spans = [make_span(digest, 1) for digest in decodes]
    assert inputs.num_pages(spans) == MOST_PAGES
    narrow = ["one", "", "idle", *["one"] * 17]
    for digests, num_pages in ((decodes, MOST_PAGES), (narrow, 1)):
        inputs.send([make_span(digest, 1) for digest in digests], num_pages)
        there = inputs.decodes(40, num_pages)
        for pdl in (False, True) if overlaps(device) else (False,):
            adapting = Adapting(adapters, there["adapter_tiles"], there["adapter_rows"], chunks=False)
            compare_products(adapters, adapting, digests, num_rows=40, pdl=pdl)
    runs = [("two", 70), ("", 5), ("four", 3), ("one", 130), ("two", 1)]
    arrays = inputs.chunks([make_span(*run) for run in runs])
    tiles, rows = (torch.tensor(arrays[f"adapter_{name}"], device=device) for name in ("tiles", "rows"))
    chunks = [digest for digest, count in runs for _ in range(count)]
    adapting = Adapting(adapters, tiles, rows, chunks=True)
    compare_products(adapters, adapting, chunks, num_rows=len(chunks), pdl=False)


def compare_products(
    adapters: CudaAdapters, adapting: Adapting, digests: list[str], *, num_rows: int, pdl: bool
) -> None:
    names = list(PAGES)
    for product in ("qkv", "output", "gate_up", "down"):
        place = adapters.places[1, product]
        matrices = [matrices_of(adapters, place, PAGES[name]) for name in names]
        for dtype in {adapters.pool.dtype, torch.float32}:
            inputs = torch.randn(num_rows, place.num_inputs).to(adapters.pool)
            outputs = torch.randn(num_rows, place.ends[-1]).to(adapters.pool.device, dtype)
            chosen = [names.index(digest) if digest else -1 for digest in digests]
            expected = adapted(inputs, outputs, matrices, chosen)
            before = outputs.clone()
            adapting.add(1, product, inputs, Parts(outputs), pdl=pdl)
            far = distance(outputs, expected)
            assert far < BOUNDS[adapters.pool.dtype], (product, dtype, pdl, far)
            still = [row for row in range(num_rows) if row >= len(digests) or not digests[row]]
            assert torch.equal(outputs[still], before[still]), "a row without an adapter has changed"


def matrices_of(
    adapters: CudaAdapters, place: Place, pages: tuple[int, ...]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """An adapter's two matrices of each module, put together from its pages."""
    own, count = adapters.pool[list(pages)], len(place.modules)
    first = own[:, place.first : place.second].view(len(pages), count, RANK, place.num_inputs)
    second = own[:, place.second : place.end].view(len(pages), place.ends[-1], RANK)
    starts = (0, *place.ends)
    return [
        (
            first[:, index].reshape(-1, place.num_inputs),
            second[:, starts[index] : starts[index + 1]].permute(1, 0, 2).reshape(-1, len(pages) * RANK),
        )
        for index in range(count)
    ]


def make_span(digest: str, count: int) -> Span:
    assert len(PAGES.get(digest, ())) <= MOST_PAGES
    return Span(id="", first=0, token_ids=(0,) * count, block_ids=(0,), adapter=digest)
