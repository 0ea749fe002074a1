"""Blocks are copied where that was measured to be sooner, and a wrong belief does not last."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from axon.engine.schedule.copy_cost import FIXED_S, CopyCosts, Costs, is_worth_copying

seconds = st.floats(1e-7, 10.0)
known = st.builds(Costs, token_s=seconds, load_s=seconds, read_s=seconds)
counts = st.integers(1, 500)


@given(known, counts, st.integers(1, 64), st.floats(0.0, 1.0))
def test_the_choice_is_the_sooner_of_the_two(costs: Costs, num_loads: int, block_size: int, share: float) -> None:
    num_reads, num_tokens = int(num_loads * share), num_loads * block_size
    assert costs.token_s is not None
    assert costs.load_s is not None
    assert costs.read_s is not None
    copied_s = FIXED_S + num_loads * costs.load_s + num_reads * costs.read_s
    chosen = is_worth_copying(costs, num_tokens=num_tokens, num_loads=num_loads, num_reads=num_reads)
    assert chosen == (copied_s < num_tokens * costs.token_s)


@given(known, counts, st.integers(1, 64), st.floats(1.0, 100.0))
def test_a_faster_copy_or_a_slower_model_never_speaks_for_computing(
    costs: Costs, num_loads: int, block_size: int, factor: float
) -> None:
    asked = {"num_tokens": num_loads * block_size, "num_loads": num_loads, "num_reads": num_loads}
    assert costs.token_s is not None
    assert costs.load_s is not None
    assert costs.read_s is not None
    if is_worth_copying(costs, **asked):
        assert is_worth_copying(replace(costs, token_s=costs.token_s * factor), **asked)
        assert is_worth_copying(replace(costs, load_s=costs.load_s / factor), **asked)
        assert is_worth_copying(replace(costs, read_s=costs.read_s / factor), **asked)


@given(st.sampled_from(["token_s", "load_s", "read_s"]), known)
def test_what_was_never_measured_is_tried(unknown: str, costs: Costs) -> None:
    assert is_worth_copying(replace(costs, **{unknown: None}), num_tokens=16, num_loads=1, num_reads=1)


def test_nothing_is_no_copy() -> None:
    assert not is_worth_copying(Costs(), num_tokens=0, num_loads=0, num_reads=0)


def test_a_file_that_was_never_read_does_not_matter_for_blocks_in_memory() -> None:
    costs = Costs(token_s=1e-9, load_s=1.0)
    assert not is_worth_copying(costs, num_tokens=16, num_loads=1, num_reads=0)


@given(seconds, st.lists(seconds, max_size=20), seconds)
def test_measured_costs_come_to_what_is_measured_again_and_again(first: float, some: list[float], last: float) -> None:
    costs = CopyCosts()
    for each in (first, *some):
        costs.read(1, each)
    for _ in range(200):
        costs.read(4, 4 * last)
    assert costs.costs.read_s is not None
    assert abs(costs.costs.read_s - last) <= 1e-6 + 1e-3 * last


def test_one_slow_read_is_not_believed_for_ever() -> None:
    costs = CopyCosts()
    costs.computed(512, 0.5)
    costs.loaded(32, 0.001)
    costs.read(1, 5.0)
    asked = {"num_tokens": 4000, "num_loads": 250, "num_reads": 250}
    assert not costs.prefers_copy(**asked)
    num_refused = 0
    while not costs.prefers_copy(**asked):
        costs.relent()
        num_refused += 1
        assert num_refused < 500
