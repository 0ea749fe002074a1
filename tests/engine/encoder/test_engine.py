"""The engine of an embedding model: what it takes, refuses and gives back in a step."""

import time

import pytest

from axon.domain.sampling import Sampling
from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder.echo import EchoEncoder
from axon.engine.encoder.engine import EncoderEngine
from axon.engine.protocol.messages import Add

CONFIG = for_device(EngineConfig(echo_dimensions=8, embedding_batch=3, embedding_gather_ms=60_000.0), "cpu")


def an_engine() -> EncoderEngine:
    return EncoderEngine(CONFIG, EchoEncoder(CONFIG))


def an_add(id: str, ids: list[int], *, seed: int = 1, deadline: float | None = None, second_start: int = 0) -> Add:
    sampling = Sampling(max_tokens=0)
    return Add(
        id=id,
        prompt_ids=ids,
        second_start=second_start,
        sampling=sampling,
        seed=seed,
        tenant="a",
        deadline=deadline,
    )


def test_a_step_gives_vectors_for_one_batch_and_names_those_that_wait() -> None:
    engine = an_engine()
    noted: list[list[str]] = []
    engine.note_steps(lambda ids: noted.append(list(ids)))
    for number in range(5):
        engine.add(an_add(str(number), [number, 9]))
    first, second = engine.step(), engine.step()
    assert [each.id for each in first.embedded] == ["0", "1", "2"]
    assert (first.waiting, first.counters.batch_tokens) == (["3", "4"], 6)
    assert [each.id for each in second.embedded] == ["3", "4"]
    assert noted == [["0", "1", "2"], [], ["3", "4"], []]
    assert not engine.has_work
    assert [each.vector for each in second.embedded] == EchoEncoder(CONFIG).encode([[3, 9], [4, 9]])


def test_what_it_cannot_compute_is_refused_with_the_next_step() -> None:
    engine = an_engine()
    engine.add(an_add("long", [1] * 513))
    engine.add(an_add("unknown", [300]))
    engine.add(an_add("empty", []))
    engine.add(an_add("late", [1], deadline=time.time() - 1))
    assert engine.has_work
    assert engine.wait_s == 0.0
    refused = {each.id: each.code for each in engine.step().refused}
    assert refused.pop("long") == "context_length_exceeded"
    assert refused.pop("late") == "deadline_exceeded"
    assert refused == {"unknown": "invalid_value", "empty": "invalid_value"}
    assert not engine.has_work


def test_inputs_of_two_requests_wait_a_moment_for_others_and_those_of_one_do_not() -> None:
    engine = an_engine()
    engine.add(an_add("1", [1]))
    assert engine.wait_s == 0.0
    engine.add(an_add("2", [2], seed=2))
    assert 0.0 < engine.wait_s <= 60.0
    assert engine.step().embedded == []
    engine.add(an_add("3", [3], seed=3))
    assert len(engine.step().embedded) == 3


def test_an_input_that_is_aborted_is_not_computed() -> None:
    engine = an_engine()
    engine.add(an_add("1", [1]))
    engine.abort(["1", "unknown"])
    assert not engine.has_work
    assert engine.step().embedded == []


def test_the_second_texts_of_pairs_reach_the_encoder() -> None:
    engine = an_engine()
    engine.add(an_add("pair", [1, 2, 3], second_start=2))
    engine.add(an_add("single", [1, 2, 3]))
    pair, single = (each.vector for each in engine.step().embedded)
    assert [pair, single] == EchoEncoder(CONFIG).encode([[1, 2, 3], [1, 2, 3]], [2, 0])
    assert pair != single


@pytest.mark.parametrize("second_start", [-1, 3, 4])
def test_a_second_text_that_begins_outside_of_the_input_is_refused(second_start: int) -> None:
    engine = an_engine()
    engine.add(an_add("1", [1, 2, 3], second_start=second_start))
    assert [each.code for each in engine.step().refused] == ["invalid_value"]
