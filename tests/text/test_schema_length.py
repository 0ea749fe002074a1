"""The least length of what a schema allows: never more than its shortest JSON has."""

from typing import Any

import pytest

from axon.text.schema_length import longest_of_least


@pytest.mark.parametrize(
    ("schema", "length"),
    [
        ({"const": "abc"}, len('"abc"')),
        ({"enum": ["abcd", 1]}, 1),
        ({"type": "object", "required": ["ab"]}, len('{"ab":1}')),
        ({"type": "array", "minItems": 3}, len("[1,1,1,]")),
        ({"type": ["array", "null"], "minItems": 3}, 1),
        ({"type": "string", "minLength": 50}, 1),
        ({}, 1),
    ],
    ids=str,
)
def test_the_least_length_is_that_of_the_shortest_json(schema: dict[str, Any], length: int) -> None:
    assert longest_of_least([schema], lambda ref: None, endless=999) == length


def test_what_requires_itself_is_endless_unless_an_alternative_ends() -> None:
    root: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}
    assert longest_of_least([root, root["properties"]["a"]], lambda ref: root, endless=999) == 999
    inner: dict[str, Any] = {"anyOf": [{"$ref": "#"}, True]}
    root = {"type": "object", "required": ["a"], "properties": {"a": inner}}
    assert longest_of_least([root, inner, inner["anyOf"][0]], lambda ref: root, endless=999) < 20
