"""Structured output of the default model through a server: clients' own helpers, and an engine killed amid a schema."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from tests.journeys.server import Server
from tests.journeys.sse import text_of
from tests.journeys.test_failover import read_killing
from tests.journeys.test_responses import client

pytestmark = pytest.mark.model

MODEL = "smollm2-135m-instruct"
ASKED: list[Any] = [{"role": "user", "content": "Describe a city."}]


class City(BaseModel):
    """What is asked for."""

    name: str
    is_large: bool
    rivers: list[str]


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "size": {"enum": ["small", "large"]},
        "numbers": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "maxItems": 5},
    },
    "required": ["name", "size", "numbers"],
    "additionalProperties": False,
}


def test_parse_of_openais_client_gets_what_it_asked_for(real: Server) -> None:
    with client(real) as api:
        chat = api.chat.completions.parse(
            model=MODEL, messages=ASKED, response_format=City, max_tokens=200, temperature=0
        )
        response = api.responses.parse(
            model=MODEL, input="Describe a city.", text_format=City, max_output_tokens=200, temperature=0
        )
    assert isinstance(chat.choices[0].message.parsed, City)
    assert isinstance(response.output_parsed, City)
    assert response.text is not None
    assert response.text.format is not None
    assert response.text.format.type == "json_schema"


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"guided_choice": ["red", "green"]}, {"red", "green"}),
        ({"structured_outputs": {"regex": "[ab]"}}, {"a", "b"}),
        ({"structured_outputs": {"grammar": 'root ::= "x" | "y"'}}, {"x", "y"}),
    ],
)
def test_a_choice_a_regex_and_a_grammar_hold(real: Server, fields: dict[str, Any], allowed: set[str]) -> None:
    body = {"model": MODEL, "messages": ASKED, "temperature": 1, "n": 4, "max_tokens": 20, **fields}
    with real.client() as http:
        choices = http.post("/v1/chat/completions", json=body).raise_for_status().json()["choices"]
    assert {each["message"]["content"] for each in choices} <= allowed


def test_an_answer_of_a_schema_is_the_same_after_its_engine_was_killed(real: Server) -> None:
    body = {
        "model": MODEL,
        "prompt": "A city as JSON:",
        "temperature": 1,
        "seed": 7,
        "max_tokens": 120,
        "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}},
    }
    with real.client() as http:
        undisturbed = http.post("/v1/completions", json=body).raise_for_status().json()["choices"][0]
    got = read_killing(real, {**body, "stream": True}, at_tokens=(8,))
    assert text_of(got) == undisturbed["text"]
    assert undisturbed["finish_reason"] == "stop"
    Draft202012Validator(SCHEMA).validate(json.loads(undisturbed["text"]))
