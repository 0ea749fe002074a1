"""The contract of an engine's process, kept by every engine; what one does not promise is skipped with that reason."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from axon.domain.failure import Failure
from axon.engine.protocol.messages import Abort, Add, StepOutput
from tests.contracts.engines import (
    BITWISE_REPLAY,
    KINDS,
    KV_SHARES,
    MODEL,
    STEP_SHARES,
    Answer,
    Kind,
    Running,
    kinds,
    started,
    take,
)
from tests.engine.builders import make_add
from tests.faults.model import FOR_VLLM, make_model

YES_OR_NO = '{"grammars":[{"lark_grammar":"start: \\"yes\\" | \\"no\\""}]}'
Engines = Callable[[Kind], Running]
_LONG = 500
"""Tokens of an answer that takes nearly all of the context."""


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """Each engine, started when it is first asked for."""
    folder = make_model(tmp_path_factory.mktemp("engines") / "model", **FOR_VLLM)
    running: dict[str, Running] = {}
    with ExitStack() as stack:

        def get(kind: Kind) -> Running:
            if kind.name not in running:
                running[kind.name] = stack.enter_context(started(kind, folder))
            return running[kind.name]

        yield get


@pytest.fixture
def engine(kind: Kind, engines: Engines) -> Running:
    return engines(kind)


def new(engine: Running, **changes: Any) -> Add:
    chosen: dict[str, Any] = {"prompt": list(range(3, 13)), "max_tokens": 12, "ignore_eos": True} | changes
    return make_add(engine.new_id(), **chosen)


@kinds()
def test_it_says_what_it_runs_and_how_much_at_once(engine: Running) -> None:
    ready = engine.ready
    assert ready.kernel
    assert (ready.max_model_len, ready.max_sequences) == (512, 4)
    assert ready.num_blocks > 0
    assert ready.block_size > 0
    assert ready.eos_ids == [engine.kind.end_id] or engine.kind.name == "vllm stand-in"


@kinds()
def test_a_greedy_answer_is_the_same_each_time_and_ends_by_its_length(engine: Running) -> None:
    first, second = engine.one(new(engine)), engine.one(new(engine))
    assert first.tokens == second.tokens
    assert (len(first.tokens), first.finish) == (12, "length")
    assert [each.finish for each in first.emitted[:-1]] == [None] * 11


@kinds()
def test_a_replay_goes_on_with_as_many_tokens_as_are_left(engine: Running) -> None:
    whole = engine.one(new(engine)).tokens
    rest = engine.one(new(engine, output=whole[:5]))
    assert (len(rest.tokens), rest.finish) == (7, "length")


@kinds(BITWISE_REPLAY)
def test_a_replay_gives_the_tokens_that_would_have_come(engine: Running) -> None:
    for sampling in ({}, {"temperature": 1.0, "seed": 5}):
        whole = engine.one(new(engine, **sampling)).tokens
        assert engine.one(new(engine, output=whole[:5], **sampling)).tokens == whole[5:]


@kinds()
def test_a_seed_chooses_the_answer_and_each_choice_has_its_own(engine: Running) -> None:
    sampling = {"temperature": 1.0, "prompt": 40, "max_tokens": 16}
    answers = {
        (seed, choice): engine.one(new(engine, seed=seed, choice=choice, **sampling)).tokens
        for seed, choice in ((1, 0), (1, 1), (2, 0))
    }
    assert len(set(map(tuple, answers.values()))) == 3
    assert engine.one(new(engine, seed=1, choice=1, **sampling)).tokens == answers[1, 1]


@kinds()
def test_a_stop_token_ends_the_answer_and_is_its_last(engine: Running) -> None:
    whole = engine.one(new(engine)).tokens
    stopped = engine.one(new(engine, stop_ids=(whole[4],)))
    assert stopped.tokens == whole[: whole.index(whole[4]) + 1]
    assert stopped.finish == "stop"


@kinds(MODEL)
def test_no_token_ends_it_before_it_has_its_least(engine: Running) -> None:
    whole = engine.one(new(engine)).tokens
    answer = engine.one(new(engine, stop_ids=(whole[0],), min_tokens=6))
    assert whole[0] not in answer.tokens[:6]
    assert len(answer.tokens) >= 6


@kinds()
def test_log_probabilities_come_with_the_tokens_and_for_the_prompt(engine: Running) -> None:
    add = new(engine, logprobs=2, prompt_logprobs=True, prompt_top=1, max_tokens=3)
    answer = engine.one(add)
    for each in answer.emitted:
        assert each.logprob is not None
        assert each.logprob <= 0.0
        assert [value for _, value in each.top] == sorted((value for _, value in each.top), reverse=True)
    rows = [row for scored in answer.scored for row in scored.logprobs]
    assert len(rows) == len(add.prompt_ids) - 1
    assert all(rank >= 1 and len(top) <= 1 for _, rank, top in rows)
    assert not engine.one(new(engine, max_tokens=1)).scored


@kinds()
def test_an_aborted_sequence_falls_silent_and_others_go_on(engine: Running) -> None:
    endless = new(engine, max_tokens=400)
    engine.peer.send(endless)
    engine.peer.receive_until(lambda output: any(each.id == endless.id for each in output.emitted))
    engine.peer.send(Abort(ids=[endless.id, "nobody's"]))
    follower = new(engine, max_tokens=30)
    engine.peer.send(follower)
    outputs = engine.peer.receive_until(lambda output: any(each.finish for each in output.emitted))
    begun = next(index for index, each in enumerate(outputs) if any(one.id == follower.id for one in each.emitted))
    late = [each.id for output in outputs[begun + 1 :] for each in output.emitted]
    assert set(late) == {follower.id}
    assert outputs[-1].counters.num_running == 0


@kinds()
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"prompt": []}, Failure.INVALID),
        ({"prompt": [5] * 600}, Failure.CONTEXT_TOO_LONG),
        ({"output": [5] * 12}, Failure.INVALID),
        ({"weight": 0.0}, Failure.INVALID),
        ({"deadline": 1.0}, "deadline_exceeded"),
    ],
)
def test_what_it_cannot_run_is_refused_by_code(engine: Running, changes: dict[str, Any], code: str) -> None:
    answer = engine.one(new(engine, **changes))
    assert answer.refused is not None
    assert answer.refused.code == code
    assert not answer.tokens


@kinds()
def test_a_deadline_ends_a_sequence_that_runs(engine: Running) -> None:
    answer = engine.one(new(engine, prompt=[3, 4], max_tokens=500, deadline=time.time() + 0.05))
    assert answer.refused is None or answer.refused.code == "deadline_exceeded"


@kinds()
def test_a_tenant_finds_its_own_prompts_in_the_cache_and_no_other_tenants(engine: Running) -> None:
    prompt = [1 + index % 200 for index in range(300)]
    firsts = [
        engine.one(new(engine, prompt=prompt, max_tokens=1, tenant=tenant)).emitted[0].cached
        for tenant in ("ours", "ours", "theirs")
    ]
    assert firsts[0] == 0
    assert firsts[1] >= 128
    assert firsts[2] == 0


@kinds()
def test_a_grammar_is_followed_to_its_end_also_by_a_replay(engine: Running) -> None:
    kind = engine.kind
    words = {word: kind.ids(word) for word in ("yes", "no")}
    prompt = kind.ids("yes" if kind.name == "echo" else "say it")
    sampling = {"grammar": YES_OR_NO, "max_tokens": 20, "ignore_eos": False}
    answer = engine.one(new(engine, prompt=prompt, **sampling))
    assert answer.refused is None, answer.refused
    assert answer.tokens[:-1] in words.values() or answer.tokens in words.values()
    assert answer.finish == "stop"
    for word, ids in words.items():
        rest = engine.one(new(engine, prompt=prompt, output=ids[:1], **sampling))
        assert [*ids[:1], *rest.tokens][: len(ids)] == ids, word


@kinds()
def test_beyond_the_slots_sequences_wait_by_name_and_a_higher_priority_goes_first(engine: Running) -> None:
    others = [new(engine, max_tokens=20) for _ in range(4)]
    low, high = new(engine, max_tokens=1), new(engine, max_tokens=1, priority=1)
    answers = {add.id: Answer() for add in (*others, low, high)}
    engine.peer.send(*others, low, high)
    waited: set[str] = set()
    while not answers[low.id].has_ended:
        output = engine.peer.receive(StepOutput)
        waited.update(output.waiting)
        take(output, answers)
        if answers[low.id].tokens:
            assert answers[high.id].tokens, "a lower priority went first"
    assert low.id in waited
    take_until(engine, answers, lambda: all(each.has_ended for each in answers.values()))


def take_until(engine: Running, answers: dict[str, Answer], is_done: Callable[[], bool]) -> None:
    while not is_done():
        take(engine.peer.receive(StepOutput), answers)


@kinds()
def test_a_tenant_with_one_sequence_does_not_wait_behind_all_of_anothers(engine: Running) -> None:
    greedy = [new(engine, tenant="greedy", max_tokens=15) for _ in range(12)]
    modest = new(engine, tenant="modest", max_tokens=15)
    ended = list(engine.ask(*greedy, modest))
    assert ended.index(modest.id) < 8


@kinds(STEP_SHARES)
def test_a_tenant_gets_a_slot_while_anothers_answers_run(engine: Running) -> None:
    for _ in range(100):  # on busy cores a fast engine may be through with its answers before it hears of another one
        num_left, has_ended = _slot_while_others_run(engine)
        if num_left >= _LONG // 3:
            assert not has_ended, "another's answer had to end first"
            return
    pytest.fail("the engine has never heard of the other tenant's sequence while its slots were taken")


def _slot_while_others_run(engine: Running) -> tuple[int, bool]:
    """How many tokens the longest of another tenant's answers lacked when the engine first named the new sequence, and
    whether one of them ended before it did."""
    greedy = [new(engine, tenant="greedy", max_tokens=_LONG) for _ in range(4)]
    answers = {add.id: Answer() for add in greedy}
    engine.peer.send(*greedy)
    take_until(engine, answers, lambda: all(each.tokens for each in answers.values()))
    modest = new(engine, tenant="modest", max_tokens=3)
    answers[modest.id] = Answer()
    engine.peer.send(modest)
    num_left = None
    while not answers[modest.id].has_ended:
        output = engine.peer.receive(StepOutput)
        take(output, answers)
        if num_left is None and (modest.id in output.waiting or answers[modest.id].tokens):
            num_left = min(_LONG - len(answers[add.id].tokens) for add in greedy)
    has_ended = any(answers[add.id].has_ended for add in greedy)
    engine.peer.send(Abort(ids=[add.id for add in greedy]))
    return num_left or 0, has_ended


@kinds(KV_SHARES)
def test_a_sequence_that_never_fits_its_tenants_share_of_blocks_is_refused(engine: Running) -> None:
    share = 1.0 / engine.ready.num_blocks
    answer = engine.one(new(engine, prompt=100, kv_share=share))
    assert answer.refused is not None
    assert answer.refused.code == Failure.KV_SHARE_TOO_SMALL


@kinds()
def test_a_crash_leaves_the_names_of_the_sequences_in_its_step(kind: Kind, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model", **FOR_VLLM)
    with started(kind, folder) as engine:
        endless = [new(engine, max_tokens=400) for _ in range(2)]
        engine.peer.send(*endless)
        engine.peer.receive_until(lambda output: output.counters.num_running == 2)
        names: frozenset[str] = frozenset()
        while not names:  # between two steps the note is empty
            names = engine.peer.in_step()
        engine.peer.process.kill()
        assert names <= {add.id for add in endless}


@kinds()
def test_it_leaves_with_its_peer_in_the_middle_of_work(kind: Kind, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model", **FOR_VLLM)
    with started(kind, folder) as engine:
        engine.peer.send(new(engine, max_tokens=400))
        engine.peer.receive(StepOutput)
        assert engine.peer.close()[0] == 0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.config.kind == "vllm"], ids=lambda kind: kind.name)
def test_what_is_skipped_is_what_the_page_says_is_not_promised(kind: Kind) -> None:
    page = (Path(__file__).parents[2] / "docs" / "vllm.md").read_text()
    section = page.partition("## What it cannot promise")[2].partition("\n## ")[0]
    written = {each[0].lower() + each[1:] for each in re.findall(r"^- \*\*(.+?)\.\*\*", section, re.MULTILINE)}
    skipped = {
        str(mark.kwargs["reason"]).removeprefix(f"{kind.name} does not promise ")
        for test in globals().values()
        for marked in getattr(test, "pytestmark", [])
        if marked.name == "parametrize" and marked.args[0] == "kind"
        for case in marked.args[1]
        if getattr(case, "id", None) == kind.name
        for mark in case.marks
    }
    assert skipped == written == kind.lacks
