"""A grammar is compiled once for each thread that fills masks, if it compiles quickly, and else once."""

from collections import Counter

import pytest
from llguidance import LLMatcher

from axon.engine.grammar.prototypes import Prototypes
from tests.engine.grammar.builders import of_regex, pieces


def compile() -> LLMatcher:
    return LLMatcher(pieces().tokenizer, of_regex("[a-c]{3}"))


def test_they_are_handed_out_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axon.engine.grammar.prototypes.time.perf_counter", lambda: 0.0)  # whatever the machine does
    made = Prototypes(compile, most=3)
    first = made.take()
    assert len(made) == 1
    taken = [first, *(made.take() for _ in range(8))]
    assert len(made) == 3
    assert sorted(Counter(map(id, taken)).values()) == [3, 3, 3]


def test_one_that_compiles_slowly_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 5.0])
    monkeypatch.setattr("axon.engine.grammar.prototypes.time.perf_counter", lambda: next(times))
    made = Prototypes(compile, most=3)
    assert len({id(made.take()) for _ in range(4)}) == len(made) == 1


def test_one_that_cannot_be_compiled_is_tried_again() -> None:
    outcomes = iter([ValueError("no"), None])

    def compile_at_last() -> LLMatcher:
        if (error := next(outcomes)) is not None:
            raise error
        return compile()

    made = Prototypes(compile_at_last, most=2)
    with pytest.raises(ValueError, match="no"):
        made.take()
    assert made.take() is not None
