"""Whatever the model would say, an answer follows its grammar, and nothing around it changes a token of it."""

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from axon.engine.protocol.messages import Add
from tests.engine.builders import make_add
from tests.engine.grammar.builders import EOS_ID, OTHER_EOS_ID, make_core, of_regex, of_schema, run, text_of, tokens
from tests.long import examples

DRAFTS = 0.05
"""A price at which every draft is worth its cost."""

atoms = st.sampled_from(["a", "b", "c", "[0-9]", "[a-c]", "ab", "abab", "12", "x", '"', "{", "é", "\\{"])
atoms = atoms.map(lambda each: re.escape(each) if each in '{"' else each)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})")
        | st.tuples(inner, st.sampled_from(["?", "{2}", "{1,3}", "{0,2}"])).map(lambda pair: f"({pair[0]}){pair[1]}")
    )


regexes = st.recursive(atoms, _combined, max_leaves=6)

leaves: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "boolean"},
        {"type": "null"},
        {"type": "integer", "minimum": 0, "maximum": 99},
        {"type": "string", "maxLength": 3, "pattern": "^[a-c]*$"},
        {"enum": ["ab", "abc", 12]},
        {"const": "abab"},
    ]
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.dictionaries(st.sampled_from(["a", "ab", "c"]), inner, min_size=1, max_size=3).map(_object)
        | st.tuples(inner, st.integers(0, 2)).map(lambda pair: {"type": "array", "items": pair[0], "maxItems": pair[1]})
        | st.tuples(inner, inner).map(lambda pair: {"anyOf": list(pair)})
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    required = sorted(properties)[:2]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


schemas = st.recursive(leaves, _nested, max_leaves=5)
samplings = st.fixed_dictionaries(
    {"temperature": st.sampled_from([0.0, 1.0, 1.7])},
    optional={
        "top_k": st.just(5),
        "top_p": st.just(0.8),
        "frequency_penalty": st.just(0.5),
        "logit_bias": st.just(((65, 100.0), (EOS_ID, 100.0))),
        "logprobs": st.just(2),
        "min_tokens": st.just(4),
        "ignore_eos": st.just(True),
    },
)


def make_constrained(grammar: str, seed: int, id: str = "a", **options: Any) -> Add:
    return make_add(id, prompt=[seed, 1, 2], max_tokens=200, seed=seed, grammar=grammar, **options)


@settings(deadline=None, max_examples=examples(60))
@given(regexes, samplings, st.integers(0, 99))
def test_an_answer_is_a_text_of_its_regex(regex: str, options: dict[str, Any], seed: int) -> None:
    emitted, refused = run(make_core(), [make_constrained(of_regex(regex), seed, **options)])
    assert not refused
    assert emitted["a"][-1].finish == "stop"
    assert emitted["a"][-1].token in (EOS_ID, OTHER_EOS_ID)
    assert re.fullmatch(regex, text_of(tokens(emitted["a"])))


@settings(deadline=None, max_examples=examples(60))
@given(schemas, samplings, st.integers(0, 99))
def test_an_answer_validates_against_its_schema(schema: Any, options: dict[str, Any], seed: int) -> None:
    emitted, refused = run(make_core(), [make_constrained(of_schema(schema), seed, **options)])
    assert not refused
    assert emitted["a"][-1].finish == "stop"
    jsonschema.validate(json.loads(text_of(tokens(emitted["a"]))), schema)


grammars = regexes.map(of_regex) | schemas.map(of_schema)


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(grammars, min_size=1, max_size=4), samplings, st.integers(0, 99))
def test_neither_drafts_nor_neighbours_nor_parking_change_a_token(
    texts: list[str], options: dict[str, Any], seed: int
) -> None:
    adds = [make_constrained(text, seed + index, str(index), **options) for index, text in enumerate(texts)]
    adds.append(make_add("free", prompt=9, max_tokens=30, **options))
    alone = {add.id: run(make_core(), [add])[0][add.id] for add in adds}
    for core in (make_core(), make_core(draft_price=DRAFTS), make_core(blocks=60, draft_price=DRAFTS)):
        together, refused = run(core, adds)
        assert not refused
        for id, emitted in alone.items():
            assert tokens(together[id]) == tokens(emitted)
            assert [each.logprob for each in together[id]] == [each.logprob for each in emitted]


@settings(deadline=None, max_examples=examples(40))
@given(grammars, samplings, st.integers(0, 99), st.booleans())
def test_an_answer_replayed_from_any_token_goes_on_as_it_went(
    text: str, options: dict[str, Any], seed: int, drafts: bool
) -> None:
    add = make_constrained(text, seed, **options)
    whole = tokens(run(make_core(), [add])[0]["a"])
    assume(len(whole) > 1)
    replays = [
        make_add(
            str(end), prompt=add.prompt_ids, output=whole[:end], max_tokens=200, seed=seed, grammar=text, **options
        )
        for end in range(len(whole))
    ]
    emitted, refused = run(make_core(draft_price=DRAFTS if drafts else 1.0), replays)
    assert not refused
    assert all(whole[: int(id)] + tokens(each) == whole for id, each in emitted.items())


@settings(deadline=None, max_examples=examples(25))
@given(grammars, samplings, st.integers(0, 99))
def test_planned_a_step_ahead_an_answer_is_the_same(text: str, options: dict[str, Any], seed: int) -> None:
    adds = [make_constrained(text, seed, "bound", **options), make_add("free", prompt=9, max_tokens=20, **options)]
    step_by_step, _ = run(make_core(), adds)
    ahead, refused = run(make_core(ahead=True), adds)
    assert not refused
    assert {id: tokens(each) for id, each in ahead.items()} == {id: tokens(each) for id, each in step_by_step.items()}


def test_each_choice_follows_the_grammar_by_itself() -> None:
    text = of_regex("(ab|[0-9]{2,4}|c+x)")
    adds = [make_add(str(n), prompt=3, choice=n, max_tokens=99, grammar=text, temperature=1.5) for n in range(8)]
    emitted, _ = run(make_core(), adds)
    answers = {text_of(tokens(each)) for each in emitted.values()}
    assert len(answers) > 1
    assert all(re.fullmatch("(ab|[0-9]{2,4}|c+x)", answer) for answer in answers)


def test_what_the_grammar_forces_is_drafted_and_always_accepted() -> None:
    core = make_core(draft_price=DRAFTS)
    core.add(make_constrained(of_schema({"const": {"abab": "abcabc", "x": [1, 2, 3]}}), 1))
    drafted = accepted = steps = 0
    while core.has_work:
        output = core.step()
        drafted, accepted, steps = output.counters.drafted, output.counters.accepted, steps + 1
    assert drafted == accepted > steps


@pytest.mark.parametrize("options", [{"ignore_eos": True}, {"min_tokens": 50}], ids=str)
def test_a_choice_that_must_go_on_is_as_long_as_its_grammar_allows(options: dict[str, Any]) -> None:
    emitted, _ = run(make_core(), [make_constrained(of_regex("[0-9]{1,6}"), 3, **options)])
    assert len(text_of(tokens(emitted["a"]))) == 6
    assert emitted["a"][-1].finish == "stop"


def test_an_answer_that_is_cut_says_length() -> None:
    emitted, _ = run(make_core(), [make_add(max_tokens=3, grammar=of_regex("[a-c]{9}"), prompt=4)])
    assert emitted["a"][-1].finish == "length"


def test_the_models_own_log_probabilities_are_told() -> None:
    free, _ = run(make_core(), [make_add(prompt=3, max_tokens=1, logprobs=3)])
    bound, _ = run(make_core(), [make_add(prompt=3, max_tokens=1, logprobs=3, grammar=of_regex("x"))])
    assert bound["a"][0].top == free["a"][0].top
    assert bound["a"][0].token == ord("x")
    logprob = bound["a"][0].logprob
    assert logprob is not None
    assert logprob < min(logprob for _, logprob in free["a"][0].top)
