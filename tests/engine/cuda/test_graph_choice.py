"""The CUDA graph of a step: by its spans alone."""

from dataclasses import replace

from axon.engine.cuda.step.graph_choice import LONGEST_RUN, graph_key
from axon.engine.cuda.step.graph_plan import GraphKey, GraphPlan
from tests.engine.cuda.test_step_arrays import make_span, with_drafts

SIZES = [64, 128]


def test_drafts_take_a_graph_of_runs_and_prompts_one_of_chunks() -> None:
    drafting, plain = with_drafts(make_span(0), 1, 2, 3), make_span(1)
    prompt = make_span(2, ids=tuple(range(LONGEST_RUN + 1)))
    assert graph_key([drafting, plain], SIZES, 0, runs=True) == GraphKey("runs", 8)
    assert graph_key([drafting, prompt], SIZES, 0, runs=True) == GraphKey("chunks", 64)
    assert graph_key([make_span(0, ids=(1, 2)), plain], SIZES, 0, runs=True) == GraphKey("chunks", 64)
    assert graph_key([make_span(0, ids=(1, 2)), plain], SIZES, 0, runs=True, drafts=True) == GraphKey("runs", 4)
    assert graph_key([drafting], SIZES, 1, runs=True) == GraphKey("chunks", 64, 1), "adapters have no runs"
    assert graph_key([drafting], SIZES, 0, runs=False) == GraphKey("chunks", 64)


def test_more_draws_or_tokens_than_a_graph_has_go_without() -> None:
    many = [with_drafts(make_span(index), 1, 2, 3) for index in range(65)]
    assert graph_key(many[:64], SIZES, 0, runs=True) == GraphKey("runs", 256)
    assert graph_key(many, SIZES, 0, runs=True) is None
    assert graph_key(many[:5], SIZES, 1, runs=True) is None, "20 draws"
    scored = replace(make_span(0, ids=(1, 2), given=(2,)), drafts=())
    assert graph_key([scored], SIZES, 0, runs=True) is None


def test_graphs_of_runs_are_recorded_last() -> None:
    plan = GraphPlan(decode_sizes=[1], chunk_sizes=[64, 128], run_sizes=[8, 4])
    runs = [GraphKey("runs", 4), GraphKey("runs", 8)]
    assert [plan.take() for _ in range(5)] == [*plan.largest, GraphKey("chunks", 64), *runs]
    assert plan.is_done
