"""Writes docs/api.md from the routes and the docstrings of their fields; with --check fails when it has drifted."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
sys.path.insert(0, str(ROOT / "src"))

from axon.gateway.app import routes  # noqa: E402

INTRODUCTION = """# The API

<!-- Written by scripts/api_page.py from the code; edit the docstrings there. -->

What OpenAI's clients send and read, under `/v1`, with an API key as the bearer token; and Anthropic's, under
`/v1/messages` ([messages.md](messages.md)). Fields that are not listed are ignored, unless they ask for something that
this server cannot do yet: then the answer is a 400 that names the field. Errors have OpenAI's shape, under
`/v1/messages` Anthropic's, and `retry-after-ms` and `x-should-retry` say whether and when to try again. What asks the
model (`POST` of chat completions, completions, messages and responses) may bear an `Idempotency-Key`: sent again, it
gets the first one's answer; other routes do not read it. The same document for programs is at `/openapi.json`, for a
browser at `/docs`, which asks for a login: any user name, your API key as the password. `GET /` names these places
without a key.

A program in a web page may call the API when `gateway.cors_origins` names the page's origin
(`axon serve --set gateway.cors_origins=https://chat.example.com`): preflights of that origin are answered without a
key, and its answers, errors and streams have the `access-control-*` headers. It is off by default. Whoever opens such a
page can read the key that it sends: give each reader a key of their own, or let a server of yours send it.
"""
METHODS = ("post", "get", "patch", "delete")


def page() -> str:
    """The whole page."""
    document = routes("0").openapi()
    parts = [INTRODUCTION]
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations:
                parts += section(method, path, operations[method])
    return "\n".join(parts).rstrip("\n") + "\n"


def section(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    lines = [f"## `{method.upper()} {path}`\n", f"{plain(operation.get('description', operation['summary']))}\n"]
    fields = [
        *(
            (each["name"], each["schema"], each.get("required", False), each["in"])
            for each in operation.get("parameters", [])
        ),
        *body_fields(operation),
    ]
    if fields:
        lines.append("| field | in | type | meaning |\n|---|---|---|---|")
        lines += [row(*each) for each in fields]
        lines.append("")
    return lines


def body_fields(operation: dict[str, Any]) -> list[tuple[str, dict[str, Any], bool, str]]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    required = schema.get("required", [])
    return [(name, field, name in required, "body") for name, field in schema.get("properties", {}).items()]


def row(name: str, schema: dict[str, Any], required: bool, place: str) -> str:
    meaning = plain(schema.get("description", "")).replace("\n", " ").replace("|", "\\|")
    return f"| `{name}`{' (needed)' if required else ''} | {place} | {type_of(schema)} | {meaning} |"


def type_of(schema: dict[str, Any]) -> str:
    """The field's type in words."""
    if "anyOf" in schema:
        kinds = [type_of(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if kind in ("integer", "number"):
        return bounds(kind, schema)
    if kind == "object" and "properties" in schema:
        return "object with " + ", ".join(f"`{name}`" for name in schema["properties"])
    return str({"string": "text"}.get(kind, kind))


def bounds(kind: str, schema: dict[str, Any]) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    small = [each for each in (low, high) if each is not None and abs(each) <= 10_000]
    if low is not None and high is not None and len(small) == 2:
        return f"{kind}, {'above ' if 'exclusiveMinimum' in schema else ''}{low:g} to {high:g}"
    if low is not None and small:
        return f"{kind}, {low:g} or more"
    return str(kind)


def plain(text: str) -> str:
    return text.replace("``", "`").strip()


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.is_file() or PAGE.read_text("utf-8") != text:
            print("docs/api.md has drifted from the code; run `make api-page`.", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
