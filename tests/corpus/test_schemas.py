"""Hundreds of JSON schemas, ours and others': a finished answer of the default model validates against its schema, and
a schema that is not supported is refused by name. The validator is jsonschema, which shares no code with the server.
"""

import json
import re
from collections import Counter
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from llguidance import LLMatcher
from pydantic_core import from_json

from axon.errors import InvalidInput
from axon.sessions.compiler import Compiler
from axon.sessions.grammars import Grammars
from axon.text.grammar import Grammar, schema_grammar
from axon.text.grammar_check import byte_tokenizer
from tests import long
from tests.corpus.asker import PROMPTS, Answer, Asker
from tests.corpus.suites import Case, gathered

NUM_PARTS = 10
NUM_SHORT = 50
"""Schemas of the part that a short run has."""
OURS = json.loads(Path(__file__).with_name("schemas.json").read_text())
DOCS = Path(__file__).parents[2] / "docs" / "structured-output.md"
REASONS = {
    "keyword": r"Unimplemented keys: \[\"",
    "format": "Unknown format: ",
    "reference": "'\\$ref' to '|does not exist|Resource '|'\\$id' is supported at",
    "oneOf": "'oneOf' is not supported where its alternatives may overlap",
    "no text": "Unsatisfiable schema|it allows no text at all",
    "pattern": "regex parse error|patternProperty regexes /|pattern",
    "bounds of numbers": "'minimum' or 'maximum'|'multipleOf' is more than|a number in it is less than",
    "value of a keyword": "Expected .* for '",
    "cost": "more than [0-9]+ |multiply to more than|too many properties|too large",
}
"""What a refusal may say, by what it names."""
IGNORED_BY_US = ("optional/ecmascript-regex: ECMA 262 \\S", "optional/content: ")
"""Instances that the suite calls invalid by optional rules: what JavaScript takes for white space, and the content of
strings, which newer drafts only describe."""
LEAP = re.compile(r":60|-02-29")
"""What a format's regular expression cannot tell: whether a year has a leap day, or a minute a leap second."""
VALIDATORS = {"draft2020-12": jsonschema.Draft202012Validator, "draft7": jsonschema.Draft7Validator}


NOT_PYTHON = re.compile(r"\\\\p\{")
"""What a pattern may have that the validator's own regexes cannot read: classes of Unicode."""


def corpus() -> list[Case]:
    """Every schema, ours first, so that each part has some of each origin."""
    return [*(Case(name=name, schema=schema) for name, schema in OURS.items()), *gathered()]


def part_of(number: int) -> list[Case]:
    """The cases of one part; in a short run, as many as it has time for, of every origin."""
    cases = corpus()[number::NUM_PARTS]
    return cases if long.whole() else cases[:: max(1, len(cases) // NUM_SHORT)]


async def grammar_or_problem(grammars: Grammars, schema: dict[str, Any]) -> Grammar | str:
    try:
        return await grammars.of("corpus").schema(schema, param="schema")
    except InvalidInput as error:
        return f"{error.code} {error.param}: {error.message}"


def reason_of(problem: str) -> str:
    """What a refusal names."""
    found = [name for name, words in REASONS.items() if re.search(words, problem)]
    assert found, f"it does not say what is not supported: {problem}"
    assert problem.startswith("invalid_schema schema: ")
    return found[0]


def check(case: Case, answer: Answer) -> None:
    """Asserts that an answer follows its schema, or that one that was cut is the beginning of one."""
    if not answer.is_finished:
        from_json(answer.text, allow_partial="trailing-strings")
        text, matcher = answer.text.encode(), make_matcher(schema_grammar(case.schema))
        assert matcher.try_consume_tokens([*text]) == len(text), (case, answer)
        return
    kind = jsonschema.validators.validator_for(case.schema, default=VALIDATORS[case.draft])
    validator = kind(_exact(json.dumps(case.schema)), format_checker=kind.FORMAT_CHECKER)
    with localcontext(prec=5000):  # of a division by a small ``multipleOf``
        errors = [*validator.iter_errors(_exact(answer.text))]
    assert not errors, (case.name, case.schema, answer.text, errors[0].message)


def _exact(text: str) -> Any:
    """JSON with decimal fractions as they are written: 1.15 is a multiple of 0.01, which no binary fraction is."""
    return json.loads(text, parse_float=Decimal)


def make_matcher(grammar: Grammar) -> LLMatcher:
    matcher = LLMatcher(byte_tokenizer(), grammar.after(""), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    return matcher


@pytest.mark.model
@pytest.mark.long("schemas")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(NUM_PARTS))
async def test_a_finished_answer_follows_its_schema(asker: Asker, part: int) -> None:
    grammars, counts = Grammars(Compiler()), Counter[str]()
    accepted: list[tuple[Case, Grammar]] = []
    for case in part_of(part):
        found = await grammar_or_problem(grammars, case.schema)
        if isinstance(found, str):
            counts[f"refused: {reason_of(found)}"] += 1
        else:
            accepted.append((case, found))
    await grammars.aclose()
    prompts, max_tokens = (PROMPTS, 128) if long.whole() else (PROMPTS[:1], 40)
    answers = asker.answers([grammar for _, grammar in accepted], max_tokens=max_tokens, prompts=prompts)
    for (case, _), each in zip(accepted, answers, strict=True):
        for answer in each:
            counts["finished" if answer.is_finished else "unfinished"] += 1
            if NOT_PYTHON.search(json.dumps(case.schema)):
                counts["of a pattern that the validator cannot read"] += 1
            else:
                check(case, answer)
    print(f"part {part}: {len(accepted)} schemas accepted, answers and refusals: {dict(sorted(counts.items()))}")
    assert 2 * counts["finished"] > counts["unfinished"], "enough to say something"


@pytest.mark.long("instances")
@pytest.mark.parametrize("part", range(NUM_PARTS))
async def test_what_the_suite_calls_invalid_is_not_let_through(part: int) -> None:
    grammars = Grammars(Compiler())
    num_refused = 0
    for case in gathered()[part::NUM_PARTS]:
        grammar = await grammar_or_problem(grammars, case.schema)
        if isinstance(grammar, str) or any(words in case.name for words in IGNORED_BY_US):
            continue
        matcher = make_matcher(grammar)
        for text, is_valid in case.instances:
            ids = [*text.encode()]
            walked = matcher.deep_copy()
            is_taken = walked.try_consume_tokens(ids) == len(ids) and walked.is_accepting()
            is_leap = "format" in case.schema and LEAP.search(text)
            assert is_valid or is_leap or not is_taken, (case.name, case.schema, text)
            num_refused += not is_taken
    await grammars.aclose()
    assert num_refused


async def test_every_schema_of_ours_is_taken() -> None:
    grammars = Grammars(Compiler())
    problems = {name: await grammar_or_problem(grammars, schema) for name, schema in OURS.items()}
    await grammars.aclose()
    assert {name: problem for name, problem in problems.items() if isinstance(problem, str)} == {}


def test_ours_have_every_keyword_and_format_that_the_docs_name() -> None:
    [keywords] = re.findall(r"^These keywords hold: (.*?)\.$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    [formats] = re.findall(r"^These formats hold: (.*?)\.$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    text = json.dumps(OURS)
    assert {name for name in re.findall(r"`([^`]+)`", keywords) if f'"{name}":' not in text} == set()
    assert {name for name in re.findall(r"`([^`]+)`", formats) if f'"format": "{name}"' not in text} == set()


def test_the_corpus_has_at_least_500_schemas() -> None:
    assert len({json.dumps(case.schema, sort_keys=True) for case in corpus()}) >= 500
