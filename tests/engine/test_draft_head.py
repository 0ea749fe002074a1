"""Answers with a draft head are those without it, token for token: in batches, replayed, parked, copied."""

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.memory import Load

from axon.engine.config import EngineConfig
from axon.engine.draft_backend import HeadPlan, plan_draft
from axon.engine.drafts import DraftAsk, Drafted
from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.load.head_folder import DEFAULT_HEAD
from axon.engine.protocol.messages import Add
from axon.engine.schedule.limits.controller import FixedController, StepLimits
from axon.errors import Misconfigured
from tests.engine.builders import FREE_DRAFTS, TINY_CONFIG, make_add, open_engine, require_native, run_exactly
from tests.engine.builders import with_config as small
from tests.engine.head_files import make_head, make_target
from tests.engine.shelf_engine import ask, conversation, prefer_copies

GREEDY: dict[str, Any] = {"temperature": 0.0}
SEEDED: dict[str, Any] = {"temperature": 0.9, "top_k": 40, "top_p": 0.95, "logprobs": 1}
PENALISED: dict[str, Any] = {"temperature": 0.8, "repetition_penalty": 1.2, "presence_penalty": 0.4, "min_p": 0.01}
Open = Callable[..., Engine]


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_native()
    return make_target(tmp_path_factory.mktemp("models") / "target")


@pytest.fixture(scope="session")
def head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random head: right once in a hundred times, which is often enough to accept some."""
    return make_head(tmp_path_factory.mktemp("models") / "head")


@pytest.fixture
def config() -> EngineConfig:
    return small(dtype="int8", block_size=16, kv_memory_bytes=8 << 20)


@pytest.fixture
def open_one(config: EngineConfig, target: Path, head: Path) -> Iterator[Open]:
    """Opens engines whose head drafts whenever it can, whatever it costs; without one, plain engines."""
    opened: list[Engine] = []

    def open_one(*, has_head: bool = True, **changes: Any) -> Engine:
        changes = {"speculate": has_head, "draft_model": str(head) if has_head else "", **changes}
        engine = open_engine(target, config, **changes)
        if has_head:
            limits = StepLimits(max_prefill_tokens=config.max_batch_tokens, draft_costs=FREE_DRAFTS)
            engine._controller = FixedController(limits)
        prefer_copies(engine)
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()


def make_adds(count: int, sampling: dict[str, Any], *, max_tokens: int = 24) -> list[Add]:
    random = np.random.default_rng(count)
    prompts = [random.integers(0, 256, random.integers(1, 140)).tolist() for _ in range(count)]
    return [
        make_add(str(index), prompt=prompt, max_tokens=max_tokens, seed=index, ignore_eos=True, **sampling)
        for index, prompt in enumerate(prompts)
    ]


def drafted(engine: Engine) -> tuple[int, int]:
    counters = engine.step().counters
    return counters.model_drafted, counters.model_accepted


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED, PENALISED])
def test_a_head_changes_no_token(sampling: dict[str, Any], open_one: Open) -> None:
    adds = make_adds(6, sampling)
    engine = open_one()
    assert run_exactly(engine, adds) == run_exactly(open_one(has_head=False), adds)
    num_drafted, num_accepted = drafted(engine)
    assert num_drafted > 100
    assert num_accepted < num_drafted


def test_accepted_and_refused_drafts_both_come_up(open_one: Open) -> None:
    """A model that repeats itself soon, so that a head of few tokens is right at times."""
    engine = open_one()
    adds = make_adds(8, GREEDY, max_tokens=120)
    assert run_exactly(engine, adds) == run_exactly(open_one(has_head=False), adds)
    num_drafted, num_accepted = drafted(engine)
    assert 0 < num_accepted < num_drafted


def test_batched_equals_alone_and_choices_equal_each_alone(open_one: Open) -> None:
    choices = [make_add(f"c{n}", prompt=37, choice=n, max_tokens=8, ignore_eos=True, **SEEDED) for n in range(3)]
    adds = [*make_adds(3, PENALISED, max_tokens=8), *choices]
    engine = open_one()
    alone = {add.id: run_exactly(engine, [add])[add.id] for add in adds}
    assert run_exactly(engine, adds) == alone


def test_a_replay_goes_on_with_the_same_tokens(open_one: Open) -> None:
    """As after an engine that was killed: what came out of a step with drafts is the prompt of the next engine."""
    [add] = make_adds(1, SEEDED)
    whole = run_exactly(open_one(), [add])[add.id]
    for num_emitted, has_head in ((1, True), (5, False), (15, True)):
        replay = replace(add, output_ids=[each.token for each in whole[:num_emitted]])
        assert run_exactly(open_one(has_head=has_head), [replay])[add.id] == whole[num_emitted:]


def test_parked_sequences_resume_with_the_same_tokens(open_one: Open, config: EngineConfig) -> None:
    adds = [make_add(str(n), prompt=[n] * 20, max_tokens=30, seed=n, ignore_eos=True, **SEEDED) for n in range(6)]
    block_bytes = config.kv_memory_bytes // open_one().ready().num_blocks
    tight = open_one(kv_memory_bytes=block_bytes * 9)
    outputs = run_exactly(tight, adds)
    assert tight.step().counters.preemptions > 0
    assert outputs == run_exactly(open_one(has_head=False), adds)
    assert drafted(tight)[0] > 0


def note_drafts(engine: Engine) -> dict[tuple[int, ...], list[int]]:
    """Fills, from now on, with the first draft behind each text of a stream."""
    noted: dict[tuple[int, ...], list[int]] = {}
    head, scheduler = engine._draft_model, engine._scheduler
    assert head is not None

    def draft(asks: Sequence[DraftAsk]) -> Drafted:
        found = draft_before(asks)
        for each in asks:
            text = tuple(scheduler._roster.by_id[each.id].token_ids[: each.end])
            if found.by_id[each.id]:
                noted[text] = found.by_id[each.id][:1]
        return found

    draft_before, head.draft = head.draft, draft  # type: ignore[method-assign]
    return noted


def test_what_a_head_drafts_is_the_same_from_cached_blocks_and_after_parking(
    open_one: Open, config: EngineConfig
) -> None:
    """Its rows stand in the blocks: a head that lost its own work drafts as it would have."""
    adds = [make_add(str(n), prompt=[7 + n, 8, 9] * 7, max_tokens=30, ignore_eos=True) for n in range(6)]
    engine = open_one()
    block_bytes = config.kv_memory_bytes // engine.ready().num_blocks
    tight = open_one(kv_memory_bytes=block_bytes * 9)
    first = note_drafts(engine)
    run_exactly(engine, adds)
    again, parked = note_drafts(engine), note_drafts(tight)
    run_exactly(engine, adds)  # finds the blocks of the first time
    run_exactly(tight, adds)
    assert tight.step().counters.preemptions > 0
    for later in (again, parked):
        common = first.keys() & later.keys()
        assert len(common) > 10
        assert {text: first[text] for text in common} == {text: later[text] for text in common}


def test_blocks_from_the_shelf_bring_the_rows_of_the_head(open_one: Open, config: EngineConfig) -> None:
    block_bytes = config.kv_memory_bytes // open_one().ready().num_blocks
    plain, engine = open_one(has_head=False), open_one(kv_memory_bytes=block_bytes * 16, kv_host_bytes=8 << 20)
    talks = [conversation(number, 100, max_tokens=12, ignore_eos=True) for number in range(5)]
    expected = [ask(plain, talk).token_ids for talk in talks]
    assert [ask(engine, talk).token_ids for talk in talks] == expected
    again = [ask(engine, talk) for talk in talks]
    assert [answer.token_ids for answer in again] == expected
    assert {answer.num_cached for answer in again} == {96}
    assert drafted(engine)[0] > 0


def test_nothing_is_remembered_of_sequences_that_have_ended(open_one: Open) -> None:
    engine = open_one(kv_memory_bytes=400_000)
    load = Load(TINY_CONFIG["vocab_size"], longest=60)
    load.run(engine, 20)
    gc.collect()
    before = len(gc.get_objects())
    load.run(engine, 20, first=20)
    gc.collect()
    assert len(gc.get_objects()) - before < 50
    counters = engine.step().counters
    assert counters.model_drafted > 0
    assert counters.blocks_used == 0
    engine.check()


def test_costs_are_learned_and_drafts_made_where_they_pay(config: EngineConfig, target: Path, head: Path) -> None:
    """With the engine's own controller, whatever it decides on this machine."""
    adds = make_adds(3, SEEDED, max_tokens=60)
    engine = open_engine(target, config, draft_model=str(head))
    assert run_exactly(engine, adds) == run_exactly(open_engine(target, config, speculate=False), adds)
    assert engine._controller._ledger.balance_s is not None  # type: ignore[attr-defined]


def test_a_head_takes_its_part_of_the_kv_memory(open_one: Open) -> None:
    assert open_one().ready().num_blocks < open_one(has_head=False).ready().num_blocks


def test_a_head_that_does_not_fit_is_refused(tmp_path: Path, config: EngineConfig, target: Path) -> None:
    other = make_head(tmp_path / "other", vocab_size=300)
    with pytest.raises(Misconfigured, match="a head for models of 300 tokens"):
        open_engine(target, config, draft_model=str(other))


def test_another_arithmetic_goes_without(target: Path, head: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    config = small(device="cpu", draft_model=str(head))
    architecture = read_architecture(target)
    assert isinstance(plan_draft(replace(config, dtype="int8"), target, architecture), HeadPlan)
    assert plan_draft(config, target, architecture) is None
    assert caplog.text.count("heads draft in int8 alone") == 1
    own = replace(config, draft_model=str(DEFAULT_HEAD))
    assert plan_draft(own, target, architecture) is None
    assert plan_draft(replace(own, dtype="int8", draft_tokens=0), target, architecture) is None
    assert plan_draft(replace(config, dtype="int8", draft_model="none"), target, architecture) is None
    assert len(caplog.records) == 1, "nobody has asked for the default model's own"
