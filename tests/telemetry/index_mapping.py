"""Checks documents against the mappings of an index template, as OpenSearch would with strict mappings."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).resolve().parents[2] / "deploy" / "observability" / "opensearch" / "index-template.json"
MAX_TEXT_CHARS = 1 << 20


def properties() -> dict[str, dict[str, Any]]:
    """The mapping of each field, as shipped."""
    found: dict[str, dict[str, Any]] = json.loads(TEMPLATE.read_text("utf-8"))["template"]["mappings"]["properties"]
    return found


def problems(document: dict[str, Any], mapped: dict[str, dict[str, Any]]) -> list[str]:
    """Why the document does not fit; nothing when it does."""
    return [
        f"{name}: {why}"
        for name, value in document.items()
        if (why := "not in the template" if name not in mapped else _wrong(value, mapped[name]))
    ]


def _wrong(value: object, mapping: dict[str, Any]) -> str:
    if mapping["type"] == "object":
        return "" if isinstance(value, dict) else "no object"
    if isinstance(value, list):  # a field may have several values, each of the field's type
        return next((why for each in value if (why := _wrong(each, mapping))), "")
    match mapping["type"]:
        case "boolean":
            fits = isinstance(value, bool)
        case "long":
            fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
        case "double":
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case "keyword":
            fits = isinstance(value, str) and len(value) <= mapping["ignore_above"]
        case "text":
            fits = isinstance(value, str) and len(value) <= MAX_TEXT_CHARS
        case "date":
            fits = isinstance(value, str) and _is_time(value)
        case _:
            fits = False
    return "" if fits else f"{value!r} is no {mapping['type']}"


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
