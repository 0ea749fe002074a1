"""What the OpenAPI page says of a body that a route reads by itself."""

from typing import Any

from pydantic import BaseModel


def body_of_kind(kind: type[BaseModel]) -> dict[str, Any]:
    """The request body's part of an operation; definitions are put in line, so that it stands alone."""
    schema = kind.model_json_schema(ref_template="#/$defs/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _inlined(schema, schema)}}}}


def _inlined(node: Any, root: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, root) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(root["$defs"][node["$ref"].rsplit("/", 1)[1]], root)
    return {name: _inlined(value, root) for name, value in node.items() if name != "$defs"}
