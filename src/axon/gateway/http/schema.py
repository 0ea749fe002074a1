"""Describes request bodies in the OpenAPI document, for routes that read the body themselves. Knows no route."""

from typing import Any

from pydantic import BaseModel


def body_of_kind(kind: type[BaseModel]) -> dict[str, Any]:
    """Returns the ``requestBody`` of an OpenAPI operation, with every ``$ref`` replaced by what it refers to."""
    schema = kind.model_json_schema(ref_template="#/$defs/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _inlined(schema, schema)}}}}


def _inlined(node: Any, root: dict[str, Any]) -> Any:
    """Returns a copy of a JSON schema's node in which the definitions of ``root`` replace the references to them."""
    if isinstance(node, list):
        return [_inlined(item, root) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(root["$defs"][node["$ref"].rsplit("/", 1)[1]], root)
    return {name: _inlined(value, root) for name, value in node.items() if name != "$defs"}
