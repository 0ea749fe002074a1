"""What the compiler's process does with one task."""

import json
from typing import Any

import pytest

from axon.text.compiler.messages import Task
from axon.text.compiler.work import compiled
from axon.text.grammar import schema_grammar
from axon.text.grammar_check import GrammarCheck

CHECK = GrammarCheck()


def problem_of(schema: dict[str, Any]) -> str:
    return compiled(Task(kind="schema", text=schema_grammar(schema).text), CHECK).problem


def test_a_schema_is_bounded_before_it_is_compiled() -> None:
    assert problem_of({"type": "string"}) == ""
    assert "less than" in problem_of({"const": -(2**63)})
    assert '"not"' in problem_of({"not": {}})


def test_a_clients_own_options_are_not_those_of_its_schema() -> None:
    assert problem_of({"type": "string", "x-guidance": {"a": [[[[0]]]] * 9_000}}) == ""


@pytest.mark.parametrize("kind", ["regex", "rules"])
def test_a_grammar_is_made_and_compiled(kind: Any) -> None:
    result = compiled(Task(kind=kind, text="a+" if kind == "regex" else 'root ::= "a"'), CHECK)
    assert json.loads(result.made)["lark_grammar"]
    assert (result.problem, result.cpu_s > 0) == ("", True)


def test_what_is_nested_deeper_than_json_is_read_is_refused() -> None:
    text = '{"json_schema":' + '{"items":' * 3000 + "{}" + "}" * 3001
    assert compiled(Task(kind="schema", text=text), CHECK).problem == "it is nested too deeply"


def test_a_panic_of_the_compiler_is_a_refusal_without_its_words() -> None:
    class Panic(BaseException):
        """As a panic of Rust is to Python."""

    class Panicking(GrammarCheck):
        def problem(self, grammar: object) -> str:
            raise Panic("thread 'main' panicked at the client's own words")

    assert compiled(Task(kind="grammar", text="{}"), Panicking()).problem == "it could not be compiled"


def test_tasks_of_another_kind_form_or_text_have_other_digests() -> None:
    tasks = [
        Task(kind="schema", text="ab"),
        Task(kind="grammar", text="ab"),
        Task(kind="grammar", text="b", form="a"),
        Task(kind="grammar", text="", form="ab"),
    ]
    assert len({each.digest for each in tasks}) == len(tasks)
