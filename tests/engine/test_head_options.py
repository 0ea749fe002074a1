"""Whatever a request asks for, its tokens with a draft head are those without it, and spread as the model says.

The model says a few tokens far more often than others, and the head knows these alone: drafts are accepted and refused.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from benchmarks.memory import Load, measure

from axon.engine.batch import Batch, Drawn, Span
from axon.engine.engine import Engine
from axon.engine.grammar.grammars import Grammars
from axon.engine.protocol.messages import Add
from axon.engine.schedule.limits.controller import NO_DRAFTS, FixedController, StepLimits
from axon.text.tokenizer import ByteTokenizer
from axon.worker.job.choice import Choice
from tests.engine.builders import FREE_DRAFTS, TINY_CONFIG, make_add, open_engine, require_native, run_exactly
from tests.engine.builders import with_config as small
from tests.engine.grammar.builders import EOS_ID, OTHER_EOS_ID, of_regex, of_schema, pieces, text_of
from tests.engine.head_files import favour, make_head, make_target
from tests.long import share

LETTERS = [*b'ab1[]",']
CONFIG = small(dtype="int8", block_size=16, kv_memory_bytes=8 << 20)
GREEDY: dict[str, Any] = {"temperature": 0.0}
SEEDED: dict[str, Any] = {"temperature": 0.7, "top_k": 40, "top_p": 0.95, "logprobs": 1}
SCHEMA = {
    "type": "array",
    "items": {"anyOf": [{"type": "string", "pattern": "^[ab1]{2,9}$"}, {"type": "integer", "minimum": 1}]},
    "minItems": 3,
    "maxItems": 5,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"ignore_eos": True},
    "penalties": {"repetition_penalty": 1.2, "presence_penalty": 0.4, "frequency_penalty": 0.2, "ignore_eos": True},
    "bias": {"logit_bias": ((LETTERS[0], 0.5), (LETTERS[1], -1.0), (200, 1.0)), "ignore_eos": True},
    "ends": {"stop_ids": (LETTERS[3],), "min_tokens": 6},
    "schema": {"grammar": of_schema(SCHEMA)},
    "schema, penalties and bias": {
        "grammar": of_schema(SCHEMA),
        "presence_penalty": 0.6,
        "frequency_penalty": 0.3,
        "logit_bias": ((LETTERS[2], 3.0), (LETTERS[4], 1.0)),
    },
    "regex": {"grammar": of_regex("[ab1,]{20,30}")},
}
Open = Callable[..., Engine]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_native()
    folder = make_target(tmp_path_factory.mktemp("models") / "target", eos_token_id=[OTHER_EOS_ID, EOS_ID])
    return favour(folder, LETTERS)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_head(tmp_path_factory.mktemp("models") / "head", ids=LETTERS)


@pytest.fixture
def open_one(target: Path, head: Path) -> Iterator[Open]:
    """Opens engines whose head drafts whenever it can, whatever it costs; without one, plain engines."""
    opened: list[Engine] = []

    def open_one(*, has_head: bool = True, draft_price: float = NO_DRAFTS, **changes: Any) -> Engine:
        engine = open_engine(target, CONFIG, speculate=has_head, draft_model=str(head) if has_head else "", **changes)
        engine._open_grammars = partial(Grammars, pieces)
        if has_head:
            limits = StepLimits(
                max_prefill_tokens=CONFIG.max_batch_tokens, draft_costs=FREE_DRAFTS, draft_price=draft_price
            )
            engine._controller = FixedController(limits)
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()


def make_adds(sampling: Mapping[str, Any], num_choices: int = 3) -> list[Add]:
    """Choices of two prompts."""
    return [
        make_add(f"{n}.{choice}", prompt=[7 + n, *LETTERS] * 3, choice=choice, seed=n, max_tokens=40, **sampling)
        for n in range(2)
        for choice in range(num_choices)
    ]


def drafted(engine: Engine) -> tuple[int, int]:
    counters = engine.step().counters
    return counters.model_drafted, counters.model_accepted


@pytest.mark.parametrize("base", [GREEDY, SEEDED], ids=["greedy", "seeded"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_choices_with_any_option_have_the_tokens_that_they_have_without_a_head(
    options: dict[str, Any], base: dict[str, Any], open_one: Open
) -> None:
    """In room, and where some are parked: there, drafts of the text and of the grammar are made as well."""
    adds = make_adds(base | options)
    plain, engine = open_one(has_head=False), open_one()
    expected = run_exactly(plain, adds)
    assert run_exactly(engine, adds) == expected
    num_drafted, num_accepted = drafted(engine)
    assert (base is SEEDED) <= num_accepted < num_drafted
    block_bytes = CONFIG.kv_memory_bytes // engine.ready().num_blocks
    tight = open_one(kv_memory_bytes=block_bytes * 9, draft_price=0.05)
    assert run_exactly(tight, adds) == expected
    assert tight.step().counters.preemptions > 0
    assert drafted(tight)[0] > 0
    for emitted in expected.values():
        if options.get("grammar") == of_schema(SCHEMA) and emitted[-1].finish == "stop":
            jsonschema.validate(json.loads(text_of([each.token for each in emitted])), SCHEMA)


@pytest.mark.parametrize("base", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_what_follows_its_grammar_goes_on_in_another_engine(base: dict[str, Any], open_one: Open) -> None:
    """As after an engine that was killed within drafts."""
    [add] = make_adds(base | OPTIONS["schema, penalties and bias"], num_choices=1)[:1]
    whole = run_exactly(open_one(), [add])[add.id]
    other = open_one()
    for num_emitted in range(1, len(whole), 3):
        replay = replace(add, output_ids=[each.token for each in whole[:num_emitted]])
        assert run_exactly(other, [replay])[add.id] == whole[num_emitted:]


def read(engine: Engine, adds: Sequence[Add]) -> tuple[dict[str, tuple[str, str, list[int]]], int]:
    """The text, end and tokens of each choice as a worker reads them; and the tokens that came too late for it."""
    choices = {add.id: Choice(index=0, sampling=add.sampling, tokenizer=ByteTokenizer()) for add in adds}
    ended: set[str] = set()
    num_late = 0
    for add in adds:
        engine.add(add)
    while engine.has_work:
        for emitted in engine.step().emitted:
            choice = choices[emitted.id]
            if emitted.id in ended:
                num_late += 1
                continue
            choice.push(emitted)
            if choice.reason:
                ended.add(emitted.id)
                engine.abort([emitted.id])
    engine.check()
    return {
        id: ("".join(token.text for token in choice.waiting), choice.reason, choice.token_ids)
        for id, choice in choices.items()
    }, num_late


@pytest.mark.parametrize("base", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_a_stop_text_ends_an_answer_at_the_same_token_also_within_drafts(base: dict[str, Any], open_one: Open) -> None:
    limited = base | {"grammar": of_regex("[ab1,]{30}")}
    adds = [
        replace(add, sampling=replace(add.sampling, stop=stop), id=f"{add.id} {stop}")
        for add in make_adds(limited)
        for stop in (("ab",), ("1", "b,"), ("aaa", "bbb"))
    ]
    engine = open_one(max_sequences=24)
    expected, _ = read(open_one(has_head=False), adds)
    answers, num_late = read(engine, adds)
    assert answers == expected
    assert sum(end == "stop" for _, end, _ in answers.values()) > 6
    assert drafted(engine)[1] > 0
    assert base is GREEDY or num_late > 0, "drafts behind a stop text"


# ----- the distribution

FEW = LETTERS[:4]
NUM_PLACES = 3
PROMPT = [9, *LETTERS[:2]]
"""Short, so that the head has caught up with it at once and drafts for every stream."""
WARM = 1.5
BIAS = tuple((id, 100.0) for id in FEW)
"""So that no other token is drawn: the paths through these few have enough counts each."""


def exact(plain: Engine, prompt: list[int]) -> dict[tuple[int, ...], float]:
    """The probability of each path of tokens, by the log probabilities that the model tells of each place."""
    odds: dict[tuple[int, ...], float] = {(): 1.0}
    for place in range(NUM_PLACES):
        adds = [
            make_add(
                str(path), prompt=prompt, output=list(path), max_tokens=place + 1, logprobs=TINY_CONFIG["vocab_size"]
            )
            for path in odds
        ]
        told = run_exactly(plain, adds)
        longer = {}
        for path, before in odds.items():
            top = dict(told[str(path)][0].top)
            weights = np.exp(np.array([top[id] for id in FEW]) / WARM)
            for id, each in zip(FEW, weights / weights.sum(), strict=True):
                longer[*path, id] = before * float(each)
        odds = longer
    return odds


def follows_the_model(engine: Engine, plain: Engine, num_seeds: int) -> bool:
    """Whether the paths of many seeds are as frequent as the model says: a chi-square test, which one true
    distribution of a thousand fails."""
    prompt = PROMPT
    odds = exact(plain, prompt)
    adds = [
        make_add(str(seed), prompt=prompt, max_tokens=NUM_PLACES + 2, seed=seed, temperature=WARM, logit_bias=BIAS)
        for seed in range(num_seeds)
    ]
    paths = Counter(
        tuple(each.token for each in emitted[:NUM_PLACES]) for emitted in run_exactly(engine, adds).values()
    )
    if not paths.keys() <= odds.keys():
        return False
    common = [path for path in odds if num_seeds * odds[path] >= 5]
    expected = [num_seeds * odds[path] for path in common]
    seen = [paths[path] for path in common]
    if len(common) < len(odds):
        expected.append(num_seeds - sum(expected))
        seen.append(num_seeds - sum(seen))
    statistic = sum((one - other) ** 2 / other for one, other in zip(seen, expected, strict=True))
    part = 2 / (9 * (len(expected) - 1))
    # Wilson and Hilferty's approximation.
    return statistic < (len(expected) - 1) * (1 - part + 3.09 * math.sqrt(part)) ** 3


def test_tokens_drawn_with_a_head_are_spread_as_the_model_says(open_one: Open) -> None:
    engine = open_one(max_sequences=32)
    assert follows_the_model(engine, open_one(has_head=False), 1500)
    num_drafted, num_accepted = drafted(engine)
    assert 100 < num_accepted < num_drafted


def accept_all(_: Span, drawn: Sequence[Drawn]) -> int:
    """Every draft counts as right, whatever was drawn in its place."""
    return len(drawn) - 1


def lean_to_drafts(engine: Engine, one_in: int) -> None:
    """Has each draft of some streams said, unseen, in place of what was drawn."""
    runner = engine._runner
    run = runner.run

    def leaning(batch: Batch) -> list[Drawn]:
        results = run(batch)
        place = 0
        for span in batch.spans:
            drafts = span.token_ids[len(span.token_ids) - len(span.drafts) :]
            if span.draw is not None and span.draw.seed % one_in == 0:
                for offset, draft in enumerate(drafts):
                    results[place + offset] = replace(results[place + offset], token=draft)
            place += len(span.draws)
        return results

    runner.run = leaning  # type: ignore[method-assign]


@pytest.mark.parametrize("breakage", ["accepts all", "leans to drafts"])
def test_the_test_of_the_distribution_notices_acceptance_that_is_biased(
    breakage: str, open_one: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_one(max_sequences=32)
    if breakage == "accepts all":
        monkeypatch.setattr(Span, "num_accepted", accept_all)
    else:
        lean_to_drafts(engine, one_in=5)
    assert not follows_the_model(engine, open_one(has_head=False), 600)


# ----- memory


@pytest.mark.long
def test_memory_after_many_mixed_requests_with_a_head_is_that_after_the_first(open_one: Open) -> None:
    block_bytes = CONFIG.kv_memory_bytes // open_one().ready().num_blocks
    engine = open_one(kv_memory_bytes=block_bytes * 16)
    load = Load(TINY_CONFIG["vocab_size"], longest=60)
    before, after = measure(engine, load, first=50, total=int(share(2000)))
    assert after <= 1.05 * before
    assert min(load.num_aborted, load.num_refused) > 0, "a mixed load"
    counters = engine.step().counters
    assert counters.preemptions > 0
    assert 0 < counters.model_accepted < counters.model_drafted
