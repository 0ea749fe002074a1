"""The order in which CUDA graphs are recorded."""

from axon.engine.cuda.step.graph_plan import GraphKey, GraphPlan


def make_plan() -> GraphPlan:
    return GraphPlan(decode_sizes=[1, 2, 4], chunk_sizes=[64, 128])


def test_the_largest_of_each_kind_go_first_and_each_is_recorded_once() -> None:
    plan = make_plan()
    taken = [plan.take() for _ in range(5)]
    assert taken[:2] == plan.largest == [GraphKey("chunks", 128), GraphKey("decodes", 4)]
    assert taken[2:] == [GraphKey("decodes", 1), GraphKey("decodes", 2), GraphKey("chunks", 64)]
    assert plan.is_done
    assert plan.take() is None


def test_the_one_that_a_step_has_just_done_without_is_recorded_next() -> None:
    plan = make_plan()
    for _ in plan.largest:
        plan.take()
    plan.miss(GraphKey("decodes", 2))
    assert plan.take() == GraphKey("decodes", 2)
    plan.miss(GraphKey("decodes", 2))
    assert plan.take() == GraphKey("decodes", 1), "what is recorded is not missing"


def test_without_memory_none_is_missing_any_more() -> None:
    plan = make_plan()
    plan.take()
    plan.give_up()
    assert plan.is_done
