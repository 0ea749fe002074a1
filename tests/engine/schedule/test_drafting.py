"""A draft model that is the target's equal is right every time, whatever happens to blocks: it has the right KV.

The made-up model reads the tokens before back from its blocks, so a block that the draft model has not computed, or
that has been another sequence's since, shows as a wrong draft.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.core import EngineCore
from axon.engine.drafts import DraftAsk
from axon.engine.schedule.limits.draft_choice import CHUNK
from tests.engine.builders import make_add
from tests.engine.grammar.builders import make_core, run, tokens

samplings = st.sampled_from(
    [{"temperature": 0.0}, {"temperature": 1.0, "top_p": 0.9}, {"temperature": 0.7, "repetition_penalty": 1.3}]
)


def drafted(core: EngineCore) -> tuple[int, int]:
    counters = core.step().counters
    return counters.model_drafted, counters.model_accepted


@settings(deadline=None, max_examples=40)
@given(
    prompts=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=14), min_size=1, max_size=6),
    lengths=st.lists(st.integers(1, 16), min_size=6, max_size=6),
    tenants=st.lists(st.sampled_from("xy"), min_size=6, max_size=6),
    blocks=st.integers(9, 30),
    price=st.sampled_from([1.0, 0.05]),
    options=samplings,
    aborted=st.sets(st.integers(0, 5), max_size=2),
)
def test_an_equal_draft_model_is_always_right_and_changes_nothing(
    prompts: list[list[int]],
    lengths: list[int],
    tenants: list[str],
    blocks: int,
    price: float,
    options: dict[str, Any],
    aborted: set[int],
) -> None:
    def answers(draft: bytes | None) -> tuple[dict[str, list[int]], EngineCore]:
        core = make_core(blocks=blocks, draft=draft, draft_price=price if draft is not None else 1.0)
        for index in aborted:  # whose blocks others find, or take
            core.add(make_add(f"gone {index}", prompt=prompts[index % len(prompts)], max_tokens=9, **options))
        for _ in range(4):
            core.step()
        core.abort([f"gone {index}" for index in aborted])
        adds = [
            make_add(str(index), prompt=prompt, max_tokens=lengths[index], tenant=tenants[index], seed=index, **options)
            for index, prompt in enumerate(prompts)
        ]
        found, _ = run(core, adds)
        return {id: tokens(each) for id, each in found.items()}, core

    plain, _ = answers(None)
    equal, core = answers(b"")
    assert equal == plain
    num_drafted, num_accepted = drafted(core)
    assert num_drafted == num_accepted
    other, core = answers(b"abc")
    assert other == plain


def test_drafts_save_steps() -> None:
    def num_steps(draft: bytes | None) -> int:
        core, steps = make_core(draft=draft), 0
        core.add(make_add(prompt=20, max_tokens=60, ignore_eos=True))
        while core.has_work:
            core.step()
            steps += 1
        return steps

    assert num_steps(b"") < num_steps(None) / 3


def asks_of(core: EngineCore, monkeypatch: pytest.MonkeyPatch) -> list[DraftAsk]:
    """All that the draft model is asked from now on."""
    asked: list[DraftAsk] = []
    model = core._draft_model
    assert model is not None
    draft = model.draft

    def note(asks: list[DraftAsk]) -> Any:
        asked.extend(asks)
        return draft(asks)

    monkeypatch.setattr(model, "draft", note)
    return asked


def test_a_long_prompt_is_caught_up_in_chunks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    core = make_core(draft=b"")
    asked = asks_of(core, monkeypatch)
    prompt = [each % 7 for each in range(300)]
    run(core, [make_add("a", prompt=prompt, max_tokens=20)])
    catching_up = [ask for ask in asked if not ask.num_drafts]
    assert [len(ask.token_ids) for ask in catching_up[:2]] == [CHUNK, CHUNK]
    assert max(len(ask.token_ids) for ask in asked) <= CHUNK
    assert sum(len(ask.token_ids) for ask in asked) < 300 + 20 + 10
    asked.clear()
    run(core, [make_add("b", prompt=prompt, max_tokens=20, seed=1)])
    assert sum(len(ask.token_ids) for ask in asked) < 50, "it has the prompt's blocks from before"


def test_nothing_is_drafted_beyond_what_the_draft_model_attends_to() -> None:
    core = make_core(draft=b"")
    core._scheduler.drafting._max_draft_len = 30
    run(core, [make_add("a", prompt=20, max_tokens=40, ignore_eos=True)])
    num_drafted, _ = drafted(core)
    assert 0 < num_drafted <= 10


def test_nothing_is_drafted_behind_the_last_token() -> None:
    for max_tokens in (1, 2, 3):
        core = make_core(draft=b"")
        run(core, [make_add("a", prompt=20, max_tokens=max_tokens, ignore_eos=True)])
        assert drafted(core)[0] == max(0, max_tokens - 2)


def test_drafts_take_no_more_tokens_than_a_step_has() -> None:
    core = make_core(draft=b"")
    core._scheduler.max_batch_tokens = 6
    adds = [make_add(str(index), prompt=[index], max_tokens=12, ignore_eos=True) for index in range(4)]
    for add in adds:
        core.add(add)
    while core.has_work:
        assert core.step().counters.batch_tokens <= 6
    assert drafted(core)[0] > 0
