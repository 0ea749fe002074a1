"""Schemas that would cost too much are refused before they are compiled."""

from typing import Any

import pytest

from axon.text.schema_bounds import SchemaRefused, check_schema, check_schemas

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


def chained(number: int) -> Schema:
    defs: Schema = {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(number)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{number}": STRING}}


def endless(name: str = "a", ref: str = "#/$defs/e", **more: Any) -> Schema:
    """A schema with an alternative that requires itself."""
    inner = {"type": "object", "properties": {name: {"$ref": ref}}, "required": [name], **more}
    return {"anyOf": [STRING, {"$ref": "#/$defs/e"}], "$defs": {"e": inner}}


def objects(number: int, num_properties: int) -> Schema:
    properties = {f"p{index}": STRING for index in range(num_properties)}
    return {"anyOf": [{"type": "object", "properties": {**properties, f"a{index}": STRING}} for index in range(number)]}


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
        (chained(1_400), "more than 100 schemas in a row"),
        (objects(150, 8), "more than 1000 properties together"),
        ({"properties": {f"p{n}": {"minimum": 0.1, "maximum": n} for n in range(150)}}, "bounds of numbers"),
        ({"properties": {f"p{n}": {"format": "uri"} for n in range(150)}}, "bounds of numbers and formats"),
        ({"enum": [{"a": index} for index in range(400)]}, "more than 300 lists and objects"),
        ({"const": [[]] * 400}, "more than 300 lists and objects"),
        ({"oneOf": [{"enum": [f"{a}.{b}" for b in range(20)]} for a in range(100)]}, "values of 'enum'"),
        ({"const": "ab" * 20_000}, "no end, or more than"),
        ({"anyOf": [STRING, {"type": "array", "minItems": 1_000, "items": {"const": "a" * 400}}]}, "no end, or more"),
        ({"type": "array", "minItems": 10**9, "items": {"type": "integer"}}, "no end, or more"),
        (endless(), "no end"),
        (endless("a" * 3_000), "no end"),
        (endless(ref="#/%24defs/e"), "no end"),
        (endless(ref="#x", **{"$anchor": "x"}), "no end"),
        (endless(ref="#/anyOf/1"), "no end"),
        (endless(ref="#", **{"$id": "http://localhost/e"}), "at the schema's root only"),
        ({"$ref": "#"}, "no end"),
        ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, "no end"),
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
        {"$ref": "#/nowhere"},
        {"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}},
        {"$id": "http://localhost/a", "type": "object", "properties": {"$id": STRING}},
        {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#"}}}, "required": ["a"]},
        {"type": "array", "minItems": 100, "items": objects(1, 20)},
        {"enum": ["a" * 40_000, "b"]},
        {"$ref": 5, "anyOf": 3, "allOf": "x", "properties": [], "patternProperties": 1, "multipleOf": "x"},
        {"anyOf": [{"const": index} for index in range(150)]},
        {"multipleOf": 0.01, "properties": {"a": {"multipleOf": 5}, "b": {"multipleOf": 100}}},
        {"properties": {"multipleOf": {"type": "integer"}, "pattern": {"type": "string"}}},
    ],
)
def test_an_ordinary_schema_and_a_wrong_one_are_left_to_the_compiler(schema: Schema) -> None:
    check_schema(schema)


def test_bounds_hold_for_schemas_that_are_compiled_together() -> None:
    schemas = [
        {"type": "object", "properties": {f"{name}{index}": STRING for index in range(200)}} for name in "abcdef"
    ]
    for schema in schemas:
        check_schema(schema)
    with pytest.raises(SchemaRefused, match="properties"):
        check_schemas(schemas)
