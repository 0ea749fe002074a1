"""What steps cost, learned from steps that differ, and what follows for a full batch."""

import random

import pytest

from axon.worker.child.step_cost import StepCost


def engine(streams: int, prompt: int) -> float:
    return 0.004 + 0.00003 * streams + 0.00002 * prompt


def test_a_full_batchs_throughput_follows_from_half_empty_ones() -> None:
    cost, generator = StepCost(), random.Random(1)
    for number in range(500):
        streams, prompt = generator.randint(5, 30), generator.choice([0, 0, 0, 200, 512])
        cost.step(engine(streams, prompt) * generator.uniform(0.9, 1.1), streams=streams, prompt=prompt)
        if number % 50 == 0:
            cost.forget()
    prefill, decode = cost.speeds(64)
    assert prefill == pytest.approx(1 / 0.00002, rel=0.1)
    assert decode == pytest.approx(64 / engine(64, 0), rel=0.1)


def test_steps_that_are_all_alike_say_nothing() -> None:
    cost = StepCost()
    for _ in range(500):
        cost.step(engine(8, 0), streams=8, prompt=0)
    assert cost.speeds(64) == (None, None)


def test_decoding_alone_says_nothing_of_prompts() -> None:
    cost = StepCost()
    for number in range(500):
        cost.step(engine(1 + number % 20, 0), streams=1 + number % 20, prompt=0)
    prefill, decode = cost.speeds(64)
    assert prefill is None
    assert decode == pytest.approx(64 / engine(64, 0), rel=0.01)


def test_a_few_steps_or_no_slots_say_nothing() -> None:
    cost = StepCost()
    for number in range(20):
        cost.step(engine(number, number), streams=number, prompt=number * number)
    assert cost.speeds(64) == (None, None)
    assert StepCost().speeds(0) == (None, None)


def test_steps_from_before_a_change_are_forgotten() -> None:
    cost = StepCost()
    for factor in (10.0, 1.0):
        for number in range(20_000):
            streams, prompt = 1 + number % 20, 100 * (number % 3)
            cost.step(factor * engine(streams, prompt), streams=streams, prompt=prompt)
            if number % 50 == 0:
                cost.forget()
    assert cost.speeds(64)[1] == pytest.approx(64 / engine(64, 0), rel=0.05)
