"""Answers with a draft model are those without it, token for token, in both arithmetics of the CPU."""

import gc
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from benchmarks.memory import Load

from axon.domain.sampling import Sampling
from axon.engine.batch import Draw
from axon.engine.config import EngineConfig
from axon.engine.draft_backend import DraftPlan, plan_draft
from axon.engine.draft_model import DraftModel
from axon.engine.drafts import NEAR, DraftAsk
from axon.engine.echo import EchoRunner
from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.protocol.messages import Add
from axon.engine.schedule.limits.controller import FixedController, StepLimits
from axon.errors import Misconfigured
from tests.engine.builders import (
    FREE_DRAFTS,
    TINY_CONFIG,
    make_add,
    make_tiny_llama,
    open_engine,
    require_native,
    run_exactly,
    with_config,
)
from tests.engine.shelf_engine import ask, conversation, prefer_copies
from tests.engine.test_core import EchoLauncher

GREEDY: dict[str, Any] = {"temperature": 0.0}
SEEDED: dict[str, Any] = {"temperature": 0.9, "top_k": 40, "top_p": 0.95, "logprobs": 1}
PENALISED: dict[str, Any] = {"temperature": 0.8, "repetition_penalty": 1.2, "presence_penalty": 0.4, "min_p": 0.01}
Open = Callable[..., Engine]


@pytest.fixture(scope="session")
def other_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the same tokens and other weights and layers."""
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "other", seed=8, num_hidden_layers=1, head_dim=12)


@pytest.fixture(params=["float32", "int8"])
def config(request: pytest.FixtureRequest) -> EngineConfig:
    if request.param == "int8":
        require_native()
    return with_config(dtype=request.param, block_size=16, kv_memory_bytes=4 << 20)


@pytest.fixture
def open_one(config: EngineConfig, tiny_llama: Path) -> Iterator[Open]:
    """Opens engines whose draft model drafts whenever it can, whatever it costs; without one, plain engines."""
    opened: list[Engine] = []

    def open_one(draft: Path | None = None, **changes: Any) -> Engine:
        changes = {"speculate": draft is not None, "draft_model": str(draft or ""), **changes}
        engine = open_engine(tiny_llama, config, **changes)
        if draft is not None:
            limits = StepLimits(max_prefill_tokens=config.max_batch_tokens, draft_costs=FREE_DRAFTS)
            engine._controller = FixedController(limits)
        prefer_copies(engine)
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()


def make_adds(count: int, sampling: dict[str, Any], *, max_tokens: int = 16) -> list[Add]:
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
def test_a_draft_model_changes_no_token(
    sampling: dict[str, Any], open_one: Open, tiny_llama: Path, other_llama: Path
) -> None:
    adds = make_adds(5, sampling)
    plain = run_exactly(open_one(), adds)
    same, other = open_one(tiny_llama), open_one(other_llama)
    assert run_exactly(same, adds) == plain
    num_drafted, num_accepted = drafted(same)
    assert num_drafted == num_accepted > 0, "it draws by the same rule and number as the target"
    assert run_exactly(other, adds) == plain
    num_drafted, num_accepted = drafted(other)
    assert num_accepted < num_drafted / 4


def test_batched_equals_alone_and_choices_equal_each_alone(open_one: Open, other_llama: Path) -> None:
    choices = [make_add(f"c{n}", prompt=37, choice=n, max_tokens=8, ignore_eos=True, **SEEDED) for n in range(3)]
    adds = [*make_adds(3, PENALISED, max_tokens=8), *choices]
    engine = open_one(other_llama)
    alone = {add.id: run_exactly(engine, [add])[add.id] for add in adds}
    assert run_exactly(engine, adds) == alone


def test_a_replay_goes_on_with_the_same_tokens(open_one: Open, tiny_llama: Path, other_llama: Path) -> None:
    """As after an engine that was killed: what came out of a step with drafts is the prompt of the next engine."""
    [add] = make_adds(1, SEEDED)
    whole = run_exactly(open_one(tiny_llama), [add])[add.id]
    for num_emitted, draft in ((1, other_llama), (5, None), (15, tiny_llama)):
        replay = replace(add, output_ids=[each.token for each in whole[:num_emitted]])
        assert run_exactly(open_one(draft), [replay])[add.id] == whole[num_emitted:]


def test_parked_sequences_resume_with_the_same_tokens(open_one: Open, config: EngineConfig, tiny_llama: Path) -> None:
    adds = [make_add(str(n), prompt=[n] * 20, max_tokens=30, seed=n, ignore_eos=True, **SEEDED) for n in range(6)]
    roomy = open_one(tiny_llama)
    block_bytes = config.kv_memory_bytes // roomy.ready().num_blocks
    tight = open_one(tiny_llama, kv_memory_bytes=block_bytes * 9)
    outputs = run_exactly(tight, adds)
    assert tight.step().counters.preemptions > 0
    assert outputs == run_exactly(open_one(), adds)
    num_drafted, num_accepted = drafted(tight)
    assert num_drafted == num_accepted > 0, "it has computed again what it had lost"


def test_blocks_from_the_shelf_are_caught_up_with(open_one: Open, config: EngineConfig, tiny_llama: Path) -> None:
    """The shelf has copies of the target's blocks alone."""
    block_bytes = config.kv_memory_bytes // open_one(tiny_llama).ready().num_blocks
    plain, engine = open_one(), open_one(tiny_llama, kv_memory_bytes=block_bytes * 16, kv_host_bytes=8 << 20)
    talks = [conversation(number, 100, max_tokens=12, ignore_eos=True) for number in range(5)]
    expected = [ask(plain, talk).token_ids for talk in talks]
    assert [ask(engine, talk).token_ids for talk in talks] == expected
    again = [ask(engine, talk) for talk in talks]
    assert [answer.token_ids for answer in again] == expected
    assert {answer.num_cached for answer in again} == {96}
    num_drafted, num_accepted = drafted(engine)
    assert num_drafted == num_accepted > 0


def test_the_kv_memory_of_both_is_what_the_setting_says(open_one: Open, config: EngineConfig, tiny_llama: Path) -> None:
    architecture = read_architecture(tiny_llama)
    plan = plan_draft(replace(config, device="cpu", draft_model=str(tiny_llama)), tiny_llama, architecture)
    assert isinstance(plan, DraftPlan)
    assert plan.target.kv_memory_bytes == plan.draft.kv_memory_bytes
    assert plan.target.kv_memory_bytes + plan.draft.kv_memory_bytes <= config.kv_memory_bytes
    assert open_one(tiny_llama).ready().num_blocks == open_one().ready().num_blocks // 2


def test_nothing_is_remembered_of_sequences_that_have_ended(open_one: Open, tiny_llama: Path) -> None:
    """Requests that are aborted, refused, replayed and parked among them."""
    engine = open_one(tiny_llama, kv_memory_bytes=200_000)
    load = Load(TINY_CONFIG["vocab_size"], longest=60)
    num = 30 if engine.ready().kernel.startswith("native") else 12
    load.run(engine, num)
    gc.collect()
    before = len(gc.get_objects())
    load.run(engine, num, first=num)
    gc.collect()
    assert len(gc.get_objects()) - before < 50
    counters = engine.step().counters
    assert counters.model_drafted > 0
    assert counters.blocks_used == 0
    engine.check()


def test_costs_are_learned_and_drafts_made_where_they_pay(config: EngineConfig, tiny_llama: Path) -> None:
    """With the engine's own controller, whatever it decides on this machine."""
    adds = make_adds(3, SEEDED, max_tokens=60)
    with_draft = open_engine(tiny_llama, config, draft_model=str(tiny_llama))
    assert run_exactly(with_draft, adds) == run_exactly(open_engine(tiny_llama, config, speculate=False), adds)
    ledger = with_draft._controller._ledger  # type: ignore[attr-defined]
    assert ledger.balance_s is not None


# ----- what cannot draft is refused by name


def refusal(tiny_llama: Path, draft: Path, **changes: Any) -> str:
    with pytest.raises(Misconfigured) as refused:
        open_engine(tiny_llama, with_config(draft_model=str(draft), **changes))
    return refused.value.message


def write_tokenizer(folder: Path, tokens: list[str], **more: Any) -> None:
    content = {"model": {"type": "BPE", "vocab": {token: id for id, token in enumerate(tokens)}}, **more}
    (folder / "tokenizer.json").write_text(json.dumps(content))


def test_another_vocabulary_is_refused_with_both_names(tmp_path: Path, tiny_llama: Path) -> None:
    smaller = make_tiny_llama(tmp_path / "smaller", vocab_size=200)
    message = refusal(tiny_llama, smaller)
    assert f"engine.draft_model = {smaller} has 200 tokens" in message
    assert f"the model at {tiny_llama} has 272 tokens" in message


def test_another_tokenizer_is_refused_with_both_names_and_its_first_other_token(tmp_path: Path) -> None:
    ours, theirs = (make_tiny_llama(tmp_path / name) for name in ("ours", "theirs"))
    write_tokenizer(ours, ["a", "b", "c"])
    assert "no tokenizer.json" in refusal(ours, theirs)
    write_tokenizer(theirs, ["a", "x", "c"])
    message = refusal(ours, theirs)
    assert str(ours) in message
    assert str(theirs) in message
    assert "they differ in 1 tokens, first in id 1, 'b' in the model and 'x' in the draft model" in message
    (theirs / "tokenizer.json").write_text("{}")
    assert "cannot be read" in refusal(ours, theirs)


def test_files_that_say_the_same_otherwise_are_the_same_tokenizer(tmp_path: Path) -> None:
    ours = make_tiny_llama(tmp_path / "ours")
    theirs = make_tiny_llama(tmp_path / "theirs", vocab_size=288)  # padded
    write_tokenizer(ours, ["a", "b", "<end>"])
    added = [{"id": 2, "content": "<end>"}]
    write_tokenizer(theirs, ["a", "b"], added_tokens=added, truncation=None)
    adds = make_adds(2, GREEDY)
    engine = open_engine(ours, with_config(draft_model=str(theirs)))
    assert run_exactly(engine, adds) == run_exactly(open_engine(ours, with_config(speculate=False)), adds)


def test_what_is_no_model_and_no_number_is_refused(tmp_path: Path, tiny_llama: Path) -> None:
    assert "has no config.json" in refusal(tiny_llama, tmp_path)
    assert "engine.draft_tokens = 0" in refusal(tiny_llama, tiny_llama, draft_tokens=0)
    assert "holds not even one block" in refusal(tiny_llama, tiny_llama, kv_memory_bytes=3000)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_group_of_ranks_goes_without(
    device: Literal["cpu", "cuda"], tiny_llama: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    config = with_config(draft_model=str(tiny_llama), device=device)
    architecture = read_architecture(tiny_llama)
    assert plan_draft(replace(config, tensor_parallel=2), tiny_llama, architecture) is None
    assert caplog.text.count("is not used: it drafts for one rank alone, and this model is cut over several") == 1
    assert plan_draft(replace(config, speculate=False), tiny_llama, architecture) is None


# ----- on a GPU


def test_the_memory_of_both_is_planned_together_on_a_gpu(tiny_llama: Path, other_llama: Path) -> None:
    config = replace(with_config(draft_model=str(other_llama), device="cuda"), dtype="fp8", kv_dtype="fp8")
    plan = plan_draft(config, tiny_llama, read_architecture(tiny_llama))
    assert isinstance(plan, DraftPlan)
    assert plan.target == config
    assert (plan.draft.dtype, plan.draft.kv_dtype, plan.draft.adapter_slots) == ("bfloat16", "auto", 0)
    draft = read_architecture(other_llama)
    assert plan.draft_memory is not None
    assert plan.draft_memory.block_bytes == 2 * 2 * config.block_size * draft.num_kv_heads * draft.head_dim
    assert plan.draft_memory.fixed_bytes > 2 * draft.num_parameters()


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED, PENALISED])
def test_batches_launched_one_behind_the_other_draft_the_same(
    sampling: dict[str, Any], open_one: Open, tiny_llama: Path, other_llama: Path
) -> None:
    adds = make_adds(5, sampling)
    for draft in (tiny_llama, other_llama):
        waiting, ahead = open_one(draft), open_one(draft)
        model: Any = ahead._draft_model
        model._launcher = launcher = EchoLauncher(model._runner)
        assert run_exactly(ahead, adds) == run_exactly(waiting, adds)
        assert drafted(ahead) == drafted(waiting)
        assert launcher.num_launched


@pytest.mark.parametrize("penalty", [1.0, 1.2])
@pytest.mark.parametrize(("num_unseen", "is_chunk"), [(NEAR, False), (NEAR + 1, True)])
def test_a_devices_batch_that_catches_up_is_told_from_others(num_unseen: int, is_chunk: bool, penalty: float) -> None:
    """Also where a penalty keeps batches from being launched ahead. A CPU computes all of them in one way."""
    sampling = Sampling(max_tokens=9, repetition_penalty=penalty)
    asks = [
        DraftAsk(
            id=id,
            first=0,
            token_ids=tuple(range(number)),
            block_ids=tuple(range(3 * place, 3 * place + 3)),
            num_drafts=2,
            draw=Draw(sampling=sampling, seed=0, choice=0, position=0),
        )
        for place, (id, number) in enumerate((("near", 1), ("far", num_unseen)))
    ]
    for launches in (True, False):
        runner = EchoRunner(8, 16, 0.0)
        launcher = EchoLauncher(runner) if launches else None
        model = DraftModel(runner, vocab_size=256, max_len=100, launcher=launcher)
        assert [each.is_chunk for each in model.draft(asks).rounds] == [is_chunk and launches, False]


def test_behind_an_id_that_the_target_does_not_have_nothing_is_drafted(open_one: Open, tiny_llama: Path) -> None:
    adds = make_adds(4, GREEDY)
    engine, plain = open_one(tiny_llama), open_one()
    model: Any = engine._draft_model
    model._launcher, model._vocab_size = EchoLauncher(model._runner), 200
    outputs = run_exactly(engine, adds)
    assert outputs == run_exactly(plain, adds)
    assert any(each.token >= 200 for emitted in outputs.values() for each in emitted)
