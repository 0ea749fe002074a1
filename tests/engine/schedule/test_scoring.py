"""How likely a prompt's tokens are: the same as if each had been drawn, told once each and in order."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.batch import Batch, Drawn
from axon.engine.config import EngineConfig
from axon.engine.core import EngineCore
from axon.engine.engine import Engine
from axon.engine.protocol.messages import Add, Emitted
from axon.engine.schedule.scheduler import Scheduler
from tests.engine.builders import (
    TINY_CONFIG,
    make_add,
    make_scheduler,
    make_tiny_llama,
    open_engine,
    require_native,
    run_exactly,
    with_config,
)
from tests.engine.plain_llama import logprobs_of

CONFIGS = {"float32": with_config(), "int8": with_config(dtype="int8", block_size=16)}
Scores = list[tuple[float, int, list[tuple[int, float]]]]


@pytest.fixture(scope="module", params=CONFIGS)
def config(request: pytest.FixtureRequest) -> EngineConfig:
    if request.param == "int8":
        require_native()
    return CONFIGS[request.param]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "model")


def run(engine: EngineCore, adds: list[Add]) -> tuple[dict[str, Scores], dict[str, list[Emitted]]]:
    """Steps until nothing is left: what is said of the prompts, and of the tokens behind them."""
    scores: dict[str, Scores] = {add.id: [] for add in adds}
    emitted: dict[str, list[Emitted]] = {add.id: [] for add in adds}
    for add in adds:
        engine.add(add)
    while engine.has_work:
        output = engine.step()
        for scored in output.scored:
            assert not emitted[scored.id], "a prompt is told of before its answer"
            scores[scored.id] += scored.logprobs
        for each in output.emitted:
            emitted[each.id].append(each)
    engine.check()
    return scores, emitted


def make_prompt(length: int, seed: int = 1) -> list[int]:
    prompt: list[int] = np.random.default_rng(seed).integers(0, 256, length).tolist()
    return prompt


def as_drawn(engine: Engine, prompt: list[int], count: int) -> Scores:
    """For each token but the first: the model asked for what comes next, with all that it may be in its ranking."""
    everything = TINY_CONFIG["vocab_size"]
    adds = [
        make_add(str(end), prompt=prompt[:end], max_tokens=1, logprobs=everything, ignore_eos=True)
        for end in range(1, len(prompt))
    ]
    rankings = [each.top for [each] in run_exactly(engine, adds).values()]
    return [
        (dict(ranking)[token], 1 + [id for id, _ in ranking].index(token), ranking[:count])
        for token, ranking in zip(prompt[1:], rankings, strict=True)
    ]


def test_a_prompts_logprobs_are_those_of_drawn_tokens_to_the_bit(folder: Path, config: EngineConfig) -> None:
    engine = open_engine(folder, config)
    prompt = make_prompt(50)
    add = make_add("a", prompt=prompt, max_tokens=3, logprobs=2, prompt_logprobs=True, ignore_eos=True)
    for _ in range(2):  # the second time its blocks could be found
        scores, emitted = run(engine, [add])
        assert scores["a"] == as_drawn(engine, prompt, 2)
        assert emitted["a"][0].cached == 0
    plain = make_add("a", prompt=prompt, max_tokens=3, logprobs=2, ignore_eos=True)
    assert run_exactly(engine, [plain]) == emitted


@pytest.mark.parametrize("changes", [{}, {"max_batch_tokens": 17}, {"max_prefill_tokens": 5, "speculate": True}])
def test_in_a_batch_and_in_chunks_they_are_the_same(
    folder: Path, config: EngineConfig, changes: dict[str, Any]
) -> None:
    adds = [
        make_add(
            str(index),
            prompt=make_prompt(3 + 37 * index, index),
            max_tokens=6,
            logprobs=index % 2,
            prompt_logprobs=index % 3 != 2,
            ignore_eos=True,
        )
        for index in range(4)
    ]
    alone = [run(open_engine(folder, config), [add]) for add in adds]
    scores, emitted = run(open_engine(folder, config, **changes), adds)
    for add, (own_scores, own_emitted) in zip(adds, alone, strict=True):
        assert scores[add.id] == own_scores[add.id]
        assert emitted[add.id] == own_emitted[add.id]
        assert len(scores[add.id]) == (len(add.prompt_ids) - 1 if add.sampling.prompt_logprobs else 0)


def test_they_are_those_of_a_plain_float32_softmax(folder: Path) -> None:
    prompt = make_prompt(90)
    plain = logprobs_of(folder, prompt)
    add = make_add("a", prompt=prompt, max_tokens=1, prompt_logprobs=True, prompt_top=5)
    scores, emitted = run(open_engine(folder, CONFIGS["float32"]), [add])
    assert emitted["a"][0].logprob is None, "they are asked for of the prompt alone"
    for row, token, (logprob, rank, top) in zip(plain, prompt[1:], scores["a"], strict=False):
        assert logprob == pytest.approx(row[token], abs=1e-4)
        assert 1 + (row > row[token] + 1e-4).sum() <= rank <= (row > row[token] - 1e-4).sum()
        assert [each for _, each in top] == pytest.approx(sorted(row, reverse=True)[:5], abs=1e-4)
        assert [each for _, each in top] == pytest.approx([row[id] for id, _ in top], abs=1e-4)
    assert len(scores["a"]) == len(prompt) - 1


@pytest.mark.parametrize(("logprobs", "prompt_top", "expected"), [(2, None, 2), (4, 1, 1), (None, 3, 3), (1, 0, 0)])
def test_a_prompt_may_ask_for_another_number_of_likely_tokens_than_its_answer(
    folder: Path, config: EngineConfig, logprobs: int | None, prompt_top: int | None, expected: int
) -> None:
    add = make_add("a", prompt=9, max_tokens=2, logprobs=logprobs, prompt_logprobs=True, prompt_top=prompt_top)
    scores, emitted = run(open_engine(folder, config), [add])
    assert [len(top) for _, _, top in scores["a"]] == [expected] * 8
    assert [len(each.top) for each in emitted["a"]] == [logprobs or 0] * len(emitted["a"])


def test_a_prompt_of_one_token_has_nothing_to_tell(folder: Path, config: EngineConfig) -> None:
    scores, emitted = run(open_engine(folder, config), [make_add("a", prompt=[7], logprobs=0, prompt_logprobs=True)])
    assert (scores, len(emitted["a"])) == ({"a": []}, 4)


def test_what_goes_on_after_its_first_token_was_told_before(folder: Path, config: EngineConfig) -> None:
    add = make_add("a", prompt=20, output=[5], max_tokens=4, logprobs=0, prompt_logprobs=True, ignore_eos=True)
    scores, emitted = run(open_engine(folder, config), [add])
    assert (scores, len(emitted["a"])) == ({"a": []}, 3)


def draw(batch: Batch) -> list[Drawn]:
    """What is asked of a given token is answered with its id."""
    return [Drawn(1 if draw.given is None else draw.given, float(draw.given or 0), (), 1) for draw in batch.draws]


@settings(deadline=None)
@given(
    prompts=st.lists(st.integers(1, 90), min_size=1, max_size=4),
    blocks=st.integers(24, 60),
    max_batch_tokens=st.integers(4, 200),
    max_scored_tokens=st.integers(1, 200),
    ahead=st.booleans(),
)
def test_every_token_of_a_prompt_is_told_of_once_and_in_order_whoever_is_parked(
    prompts: list[int], blocks: int, max_batch_tokens: int, max_scored_tokens: int, ahead: bool
) -> None:
    scheduler = make_scheduler(blocks=blocks, max_batch_tokens=max_batch_tokens, max_scored_tokens=max_scored_tokens)
    adds = [
        make_add(str(index), prompt=length, max_tokens=9, logprobs=0, prompt_logprobs=True)
        for index, length in enumerate(prompts)
    ]
    for add in adds:
        scheduler.add(add)
    told = _run(scheduler, max_scored_tokens, ahead=ahead)
    for add in adds:
        assert told.get(add.id, []) == add.prompt_ids[1:]


def _run(scheduler: Scheduler, max_scored_tokens: int, *, ahead: bool) -> dict[str, list[int]]:
    """To its end, with a step in flight where it runs ``ahead``."""
    told: dict[str, list[int]] = {}
    flying: list[Batch] = []
    while scheduler.has_work or flying:
        batch = scheduler.schedule()
        assert sum(len(span.scores) for span in batch.spans) <= max_scored_tokens + len(batch.spans)
        for span in batch.spans:
            rows = range(span.end - len(span.draws), span.end)
            assert all(after == row + 1 for row, after in pairwise(rows)), "asked behind its last tokens"
        flying += [batch] if batch.spans else []
        if flying and (len(flying) > ahead or not batch.spans):
            done = flying.pop(0)
            scheduler.settle(done, draw(done))
            for scored in scheduler.take_scored():
                told.setdefault(scored.id, []).extend(int(logprob) for logprob, _, _ in scored.logprobs)
    scheduler.check()
    return told
