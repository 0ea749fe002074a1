"""The form that a request asks of its answer, in the words of every client that is known."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from axon.errors import InvalidInput
from axon.gateway.directives import CHAT
from axon.gateway.http.body import parse
from axon.gateway.openai.formats import Form, grammar_of
from axon.gateway.openai.requests import ChatRequest
from axon.sessions.grammars import Grammars, TenantGrammars
from tests.sessions.in_process import InProcess

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
NAMED = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}


def read(**fields: Any) -> ChatRequest:
    body = {"model": "small", "messages": [{"role": "user", "content": "hi"}], **fields}
    return parse(ChatRequest, json.dumps(body).encode(), CHAT.refused, CHAT.notes)


@pytest.fixture
async def grammars() -> AsyncIterator[TenantGrammars]:
    found = Grammars(InProcess())
    yield found.of("a")
    await found.aclose()


async def made(grammars: TenantGrammars, **fields: Any) -> str:
    grammar = await grammar_of(grammars, read(**fields).form)
    return grammar.after("") if grammar else ""


@pytest.mark.parametrize(
    ("fields", "form"),
    [
        ({}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"structured_outputs": {}}, None),
        ({"response_format": {"type": "json_object"}}, Form("json_object", None, "response_format")),
        ({"response_format": NAMED}, Form("json", SCHEMA, "response_format.json_schema.schema")),
        ({"structured_outputs": {"json": SCHEMA}}, Form("json", SCHEMA, "structured_outputs.json")),
        ({"structured_outputs": {"regex": "a+"}}, Form("regex", "a+", "structured_outputs.regex")),
        ({"structured_outputs": {"choice": ["a"]}}, Form("choice", ["a"], "structured_outputs.choice")),
        (
            {"structured_outputs": {"grammar": "start: /a/"}},
            Form("grammar", "start: /a/", "structured_outputs.grammar"),
        ),
        ({"structured_outputs": {"json_object": True}}, Form("json_object", None, "structured_outputs.json_object")),
        ({"guided_json": SCHEMA}, Form("json", SCHEMA, "guided_json")),
        ({"guided_regex": "a+"}, Form("regex", "a+", "guided_regex")),
        ({"guided_choice": ["a"], "response_format": {"type": "text"}}, Form("choice", ["a"], "guided_choice")),
        ({"guided_grammar": "start: /a/"}, Form("grammar", "start: /a/", "guided_grammar")),
    ],
)
def test_every_way_to_ask_for_a_form_is_understood(fields: dict[str, Any], form: Form | None) -> None:
    assert read(**fields).form == form


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {"type": "json_object"}, "guided_regex": "a"}, "guided_regex"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs.choice"),
        ({"guided_json": SCHEMA, "guided_choice": ["a"]}, "guided_choice"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "structural_tag"}}, "response_format.type"),
        ({"structured_outputs": {"whitespace_pattern": " "}}, "structured_outputs.whitespace_pattern"),
        ({"structured_outputs": {"structural_tag": "{}"}}, "structured_outputs.structural_tag"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
            "response_format.json_schema.name",
        ),
        ({"guided_choice": []}, "guided_choice"),
        ({"guided_regex": ""}, "guided_regex"),
    ],
)
def test_what_contradicts_itself_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read(**fields).form  # noqa: B018
    assert raised.value.param == param


@pytest.mark.parametrize(
    ("fields", "param", "why"),
    [
        ({"guided_json": "{"}, "guided_json", "JSON"),
        ({"guided_json": "[1]"}, "guided_json", "JSON object"),
        ({"guided_json": {"not": {}}}, "guided_json", '"not"'),
        ({"guided_json": {"enum": ["x" * 70_000]}}, "guided_json", "65536"),
        ({"guided_json": {"type": "integer", "minimum": 10**40}}, "guided_json", ""),
        ({"guided_regex": "("}, "guided_regex", "unclosed group"),
        ({"guided_regex": "(a{1000}){1000}"}, "guided_regex", "too large"),
        ({"guided_grammar": "start: nothing"}, "guided_grammar", "unknown name"),
        ({"guided_grammar": 'start: %json {"type": "string"}'}, "guided_grammar", "%json"),
    ],
)
async def test_a_grammar_that_does_not_compile_is_refused_by_name(
    grammars: TenantGrammars, fields: dict[str, Any], param: str, why: str
) -> None:
    with pytest.raises(InvalidInput, match=why or None) as raised:
        await made(grammars, **fields)
    assert raised.value.param == param
    assert len(raised.value.message) < 700


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": NAMED},
        {"guided_json": json.dumps(SCHEMA)},
        {"guided_regex": "[a-z]+"},
        {"guided_choice": ["yes", "no"]},
        {"guided_grammar": 'root ::= "a" | "b"'},
    ],
)
async def test_a_good_form_becomes_a_grammar(grammars: TenantGrammars, fields: dict[str, Any]) -> None:
    assert json.loads(await made(grammars, **fields))["grammars"]


async def test_the_same_schema_is_compiled_once(grammars: TenantGrammars, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(grammars, guided_json=SCHEMA)
    monkeypatch.setattr(InProcess, "run", None)
    assert await made(grammars, guided_json=SCHEMA)


def test_the_template_is_told_what_the_request_says() -> None:
    asked = read(chat_template_kwargs={"enable_thinking": True, "level": 3}, reasoning_effort="none")
    assert asked.template_options == {"reasoning_effort": "none", "enable_thinking": True, "level": 3}
    assert read(reasoning_effort="none").template_options["enable_thinking"] is False
    assert read().template_options == {}


@pytest.mark.parametrize("name", ["messages", "tools", "bos_token"])
def test_an_option_that_the_server_sets_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read(chat_template_kwargs={name: "x"}).template_options  # noqa: B018
    assert raised.value.param == f"chat_template_kwargs.{name}"


@pytest.mark.parametrize("options", [{"a": []}, {"a": {}}, {f"a{index}": 1 for index in range(17)}, {"a": "x" * 2000}])
def test_options_of_a_template_are_few_and_plain(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        read(chat_template_kwargs=options)
