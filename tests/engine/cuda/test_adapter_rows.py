"""Rows sorted by adapter, and the pages of adapters: what the kernels are told. Needs no GPU."""

from pathlib import Path

import numpy as np
import pytest
import torch

from axon.domain.sampling import Sampling
from axon.engine.batch import Draw, Span
from axon.engine.cuda.adapters.adapter_pages import CudaAdapters, num_pages
from axon.engine.cuda.adapters.adapter_rows import chunked_rows, decoded_rows, most_tiles, no_chunked_rows, pages_needed
from axon.engine.cuda.step.graph_plan import GraphKey, GraphPlan
from axon.engine.load.architecture import read_architecture
from axon.errors import Misconfigured
from tests.engine.adapter_files import make_adapter

PAGES = {"a": (3,), "b": (0, 2)}
DRAW = Draw(sampling=Sampling(max_tokens=1), seed=0, choice=0, position=0)


def span(adapter: str, count: int = 1, *, draw: Draw | None = DRAW, scores: int = 0) -> Span:
    return Span(
        id="", first=0, token_ids=(0,) * count, block_ids=(0,), adapter=adapter, draw=draw, scores=(DRAW,) * scores
    )


def test_rows_of_one_adapter_stand_together_in_tiles() -> None:
    arrays = decoded_rows([span(name) for name in ("a", "", "b", "a", "a", "b")], PAGES, 4, 2, 8)
    assert arrays["adapter_rows"].tolist() == [0, 3, 4, 2, 5, 0, 0, 0]
    used = [[0, 2, 3, -1, -1, -1], [2, 1, 3, -1, -1, -1], [3, 2, 0, 2, -1, -1]]
    assert arrays["adapter_tiles"].tolist() == used + [[0, 0, -1, -1, -1, -1]] * 5


@pytest.mark.parametrize(("names", "expected"), [("", 0), ("a", 1), ("ab", 4)])
def test_a_step_has_room_for_one_page_or_for_the_most(names: str, expected: int) -> None:
    assert pages_needed([span(""), *(span(name) for name in names)], PAGES) == expected


def test_chunks_have_tiles_of_all_rows_and_of_those_with_a_result() -> None:
    spans = [span("a", 3), span("", 2), span("b", 2, draw=None), span("a", 4, scores=2)]
    arrays = chunked_rows(spans, PAGES, 4, 4)
    assert arrays["adapter_rows"].tolist() == [0, 1, 2, 7, 8, 9, 10, 5, 6]
    assert [row[:2] for row in arrays["adapter_tiles"].tolist()] == [[0, 4], [4, 3], [7, 2]]
    # Drawn rows stand first, those that are scored behind them: a, none, a; then a, a.
    assert arrays["kept_adapter_rows"].tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize(("num_rows", "num_spans", "tile"), [(64, 16, 64), (512, 16, 64), (5, 16, 64), (40, 3, 16)])
def test_a_graph_has_room_for_every_way_to_spread_adapters(num_rows: int, num_spans: int, tile: int) -> None:
    numbers = np.random.default_rng(num_rows)
    room = no_chunked_rows(num_rows, num_spans, 1, tile)
    assert len(room["adapter_tiles"]) == most_tiles(num_rows, num_spans, tile)
    pages = {str(number): (0,) for number in range(num_spans)}
    for _ in range(50):
        ends = np.sort(numbers.integers(1, num_rows + 1, min(num_spans, num_rows)))
        counts = [count for count in np.diff([0, *ends]).tolist() if count]
        spans = [span(str(numbers.integers(0, num_spans)), count) for count in counts]
        arrays = chunked_rows(spans, pages, 1, tile)
        for name, array in arrays.items():
            assert len(array) <= len(room[name]), name


def test_a_graph_with_adapters_is_missing_once_a_step_did_without_it() -> None:
    plan = GraphPlan(decode_sizes=[1, 2], chunk_sizes=[])
    while plan.take():
        pass
    key = GraphKey("decodes", 2, num_pages=1)
    assert plan.is_done
    plan.miss(key)
    assert plan.take() == key
    plan.miss(key)
    assert plan.take() is None, "it is recorded once"
    plan.give_up()
    plan.miss(GraphKey("decodes", 1, num_pages=1))
    assert plan.take() is None, "there was no memory for more"


def test_an_adapter_lies_in_its_pages_and_gives_them_back(tiny_llama: Path, tmp_path: Path) -> None:
    architecture = read_architecture(tiny_llama)
    count = num_pages(architecture, torch.float32, slots=1, most_bytes=1 << 30)
    adapters = CudaAdapters(architecture, torch.float32, torch.device("cpu"), count=count)
    packed, num_bytes = adapters.read(make_adapter(tmp_path / "wide", tiny_llama, rank=17))
    assert num_bytes == 2 * adapters.page_size * 4
    adapters.hold("wide", packed)
    assert len(adapters.pages["wide"]) == 2
    adapters.drop("wide")
    assert not adapters.pages
    with pytest.raises(Misconfigured, match="rank 65, and a GPU computes adapters up to rank 64"):
        adapters.read(make_adapter(tmp_path / "too-wide", tiny_llama, rank=65))
