"""Schemas that would cost too much are refused before they are compiled."""

from typing import Any

import pytest

from axon.text.schema_bounds import SchemaRefused, check_schema

Schema = dict[str, Any]
STRING: Schema = {"type": "string"}


def nested(levels: int) -> Schema:
    schema = STRING
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def doubled(keyword: str, levels: int) -> Schema:
    """A schema whose definitions each name the one before twice."""
    defs: Schema = {"d0": STRING}
    for level in range(1, levels + 1):
        ref = {"$ref": f"#/$defs/d{level - 1}"}
        defs[f"d{level}"] = {keyword: [ref, ref]}
    return {"allOf": [{"$ref": f"#/$defs/d{levels}"}, {"type": "string"}], "$defs": defs}


def of_choices(number: int) -> Schema:
    return {
        "allOf": [
            {"anyOf": [{"type": "object", "properties": {f"{name}{index}": STRING}} for name in "ab"]}
            for index in range(number)
        ]
    }


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (nested(30), "levels deep"),
        ({"enum": [*range(10_000)]}, "more than 6000 values"),
        ({"properties": {f"p{index}": STRING for index in range(400)}}, "too many properties"),
        ({"pattern": "^((a{1000}){1000}){1000}$"}, "patterns are too large"),
        ({"patternProperties": {f"^a{{{index}}}": STRING for index in range(20)}}, "more than 16 patterns"),
        ({"anyOf": [{"multipleOf": each} for each in (997, 991)]}, "least common multiple"),
        ({"multipleOf": 0.00012345}, "least common multiple"),
        ({"$ref": "https://example.com/schema.json"}, "must point into the schema itself"),
        ({"anyOf": [STRING] * 300}, "more than 200 members"),
        (of_choices(12), "multiply"),
        (doubled("anyOf", 20), "multiply"),
        ({"allOf": [{"properties": {"a": {"anyOf": [STRING] * 10}}}] * 2}, "multiply"),
    ],
)
def test_a_costly_schema_is_refused_with_the_reason(schema: Schema, why: str) -> None:
    with pytest.raises(SchemaRefused, match=why):
        check_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        nested(20),
        of_choices(4),
        {"properties": {f"p{index}": STRING for index in range(200)}},
        {"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": 5, "anyOf": 3, "allOf": "x", "properties": [], "patternProperties": 1, "multipleOf": "x"},
        {"anyOf": [{"const": index} for index in range(150)]},
        {"multipleOf": 0.01, "properties": {"a": {"multipleOf": 5}, "b": {"multipleOf": 100}}},
        {"properties": {"multipleOf": {"type": "integer"}, "pattern": {"type": "string"}}},
    ],
)
def test_an_ordinary_schema_and_a_wrong_one_are_left_to_the_compiler(schema: Schema) -> None:
    check_schema(schema)
