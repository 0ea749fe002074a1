"""Requests that ask too much or make no sense: schemas, regexes, grammars, tools and calls. Each names its refusal."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
SAID = [{"role": "user", "content": "hi"}]
STRING = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Bad:
    """A request that is refused."""

    name: str
    path: str
    body: dict[str, Any]
    words: str
    """A part of the message that it is refused with."""
    status: int = 400


def _doubled(levels: int) -> dict[str, Any]:
    defs: dict[str, Any] = {"d0": STRING}
    for level in range(1, levels + 1):
        defs[f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {"allOf": [{"$ref": f"#/$defs/d{levels}"}, STRING], "$defs": defs}


def _nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = STRING
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


SCHEMAS: dict[str, tuple[Any, str]] = {
    "a schema that requires itself": (
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        "has no end",
    ),
    "a schema that requires itself, with a long name": (
        {"type": "object", "properties": {"a" * 3_000: {"$ref": "#"}}, "required": ["a" * 3_000]},
        "has no end",
    ),
    "references in a circle": ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "has no end"),
    "a chain of references": (
        {"$ref": "#/$defs/d0", "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_400)}},
        "schemas in a row",
    ),
    "alternatives that double": (_doubled(20), "multiply"),
    "alternatives that multiply": (
        {"allOf": [{"anyOf": [{"properties": {f"{a}{n}": STRING}} for a in "ab"]} for n in range(12)]},
        "multiply",
    ),
    "1 MB of values": ({"enum": [f"{n:06}" for n in range(100_000)]}, "bytes"),
    "1 MB of text": ({"const": "x" * 1_000_000}, "bytes"),
    "40 kB of a text": ({"const": "x" * 40_000}, "more than 32768 characters"),
    "6,000 values": ({"enum": [*range(7_000)]}, "values"),
    "2,900 objects": ({"enum": [{"a": n} for n in range(2_900)]}, "lists and objects"),
    "100 levels": (_nested(30), "levels deep"),
    "1,000 properties": ({"properties": {f"p{n}": STRING for n in range(1_000)}}, "properties"),
    "299 ranges of numbers": (
        {"properties": {f"p{n}": {"type": "number", "minimum": -n * 1.37, "maximum": n * 1.7e8} for n in range(299)}},
        "bounds of numbers",
    ),
    "a pattern of a million": ({"type": "string", "pattern": "^((a{1000}){1000}){1000}$"}, "patterns are too large"),
    "multiples of primes": ({"anyOf": [{"multipleOf": each} for each in (997, 991)]}, "least common multiple"),
    "a billion items": ({"type": "array", "minItems": 10**9, "items": STRING}, "more than 32768 characters"),
    "a bad pattern": ({"type": "string", "pattern": "("}, "unclosed group"),
    "look-ahead": ({"type": "string", "pattern": "(?=a)"}, "look-around"),
    "an unknown format": ({"type": "string", "format": "colour"}, "Unknown format: colour"),
    "an unknown type": ({"type": "text"}, "Invalid type"),
    "not": ({"not": {}}, "not"),
    "a reference to elsewhere": ({"$ref": "http://localhost/x.json"}, "must point into the schema itself"),
    "a reference to nothing": ({"$ref": "#/nowhere"}, "nowhere"),
    "no value": ({"enum": []}, "Unsatisfiable"),
}
REGEXES = {
    "an open group": ("(", "unclosed group"),
    "look-ahead": ("(?=a)b", "look-around"),
    "a back reference": (r"(a)\1", "backreferences"),
    "a million repeats": ("(a{1000}){1000}", "too large"),
    "1,000 groups in each other": ("(" * 1_000 + "a" + ")" * 1_000, "invalid regex"),
    "no text": (r"[^\s\S]", "no text"),
}
GRAMMARS = {
    "a rule without an end": ('start: "%s" start' % ("a" * 5_000), "has no end"),
    "rules that double": (
        "start: a\n" + "".join(f"{a}: {b} {b}\n" for a, b in itertools.pairwise("abcdefghijklmnopq")) + 'q: "x"',
        "has no end, or",
    ),
    "terminals that double": (
        "start: A\n" + "".join(f"{a}: ({b} | {b})*\n" for a, b in itertools.pairwise("ABCDEFGHIJKLMNO")) + 'O: "x"',
        "too large",
    ),
    "no grammar": ("hello", "neither Lark nor GBNF"),
    "an unknown rule": ("start: foo", "unknown name"),
    "a schema inside": ('start: %json {"type": "string"}', "not supported in a grammar"),
    "28 kB of rules": ("root ::= " + '"a" ' * 7_000, "too large"),
}


def _tool(schema: dict[str, Any], name: str = "f") -> dict[str, Any]:
    return {"name": name, "parameters": schema, "strict": True}


def _called(arguments: str) -> list[dict[str, Any]]:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": ""}
    return [*SAID, {"role": "assistant", "tool_calls": [call]}, result]


def every() -> Iterator[Bad]:
    """Every bad request."""
    for name, (schema, words) in SCHEMAS.items():
        yield from _of_schema(name, schema, words)
    for name, (regex, words) in REGEXES.items():
        yield Bad(f"regex: {name}", CHAT, {"messages": SAID, "structured_outputs": {"regex": regex}}, words)
        yield Bad(f"regex: {name}", COMPLETIONS, {"prompt": "hi", "guided_regex": regex}, words)
    for name, (rules, words) in GRAMMARS.items():
        yield Bad(f"grammar: {name}", CHAT, {"messages": SAID, "structured_outputs": {"grammar": rules}}, words)
    yield from _of_tools()
    yield from _of_calls()


def _of_schema(name: str, schema: dict[str, Any], words: str) -> Iterator[Bad]:
    named = {"name": "x", "schema": schema}
    form = {"type": "json_schema", "json_schema": named}
    yield Bad(name, CHAT, {"messages": SAID, "response_format": form}, words)
    yield Bad(name, COMPLETIONS, {"prompt": "hi", "guided_json": json.dumps(schema)}, words)
    yield Bad(name, RESPONSES, {"input": "hi", "text": {"format": {"type": "json_schema", **named}}}, words)
    if len(json.dumps(schema)) > 400_000:
        words = "bytes"
    elif "type" not in schema:  # the arguments of a tool are an object
        return
    if schema.get("type", "object") != "object":
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    function = {"type": "function", "function": _tool(schema)}
    yield Bad(f"tool: {name}", CHAT, {"messages": SAID, "tools": [function]}, words)
    tool = {"name": "f", "input_schema": schema, "strict": True}
    yield Bad(f"tool: {name}", MESSAGES, {"messages": SAID, "tools": [tool], "max_tokens": 4}, words)


def _of_tools() -> Iterator[Bad]:
    tools = [_tool({"type": "object"})] * 2
    chat = [{"type": "function", "function": each} for each in tools]
    claude = [{"name": "f", "input_schema": {"type": "object"}}] * 2
    many = [_tool({"type": "object", "properties": {f"p{n}": {"not": {}}}}, f"f{n}") for n in range(100)]
    yield Bad("two tools of a name", CHAT, {"messages": SAID, "tools": chat}, "names must be unique")
    flat = [{"type": "function", **each} for each in tools]
    yield Bad("two tools of a name", RESPONSES, {"input": "hi", "tools": flat}, "names must be unique")
    yield Bad("two tools of a name", MESSAGES, {"messages": SAID, "tools": claude, "max_tokens": 4}, "must be unique")
    yield Bad("two tools of a name", COUNT, {"messages": SAID, "tools": claude}, "must be unique")
    hundred = [{"type": "function", "function": each} for each in many]
    yield Bad("100 tools with a bad schema", CHAT, {"messages": SAID, "tools": hundred}, "strict tool 'f0'")
    yield Bad("a built-in tool", CHAT, {"messages": SAID, "tools": [{"type": "web_search"}]}, "'web_search'")
    search = {"type": "web_search_20250305", "name": "w"}
    yield Bad("a built-in tool", MESSAGES, {"messages": SAID, "tools": [search], "max_tokens": 4}, "web_search")
    yield Bad("a choice of nothing", CHAT, {"messages": SAID, "tool_choice": "required"}, "'tools' are specified")
    other = {"type": "tool", "name": "g"}
    wrong = {"messages": SAID, "tools": claude[:1], "tool_choice": other, "max_tokens": 4}
    yield Bad("a choice of another tool", MESSAGES, wrong, "'g' not found")


def _of_calls() -> Iterator[Bad]:
    for arguments in ("{", "[1]", "hello", '{"a":' * 200):
        name = f"arguments that are no object: {arguments[:8]}"
        yield Bad(name, CHAT, {"messages": _called(arguments)}, "must be the text of a JSON object")
        call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": arguments}
        yield Bad(name, RESPONSES, {"input": [call]}, "must be the text of a JSON object")
    block = {"type": "tool_use", "id": "call_1", "name": "f", "input": "{"}
    used = [*SAID, {"role": "assistant", "content": [block]}, *SAID]
    yield Bad("arguments that are no object", MESSAGES, {"messages": used, "max_tokens": 4}, "messages.1.content")
    result = {"role": "tool", "tool_call_id": "call_9", "content": "4"}
    yield Bad("a result without its call", CHAT, {"messages": [*SAID, result]}, "tool")
    output = {"type": "function_call_output", "call_id": "call_9", "output": "4"}
    yield Bad("a result without its call", RESPONSES, {"input": [output]}, "call_9")
    block = {"type": "tool_result", "tool_use_id": "call_9", "content": "4"}
    said = [{"role": "user", "content": [block]}]
    yield Bad("a result without its call", MESSAGES, {"messages": said, "max_tokens": 4}, "call_9")
    yield Bad("a result without its call", COUNT, {"messages": said}, "call_9")
    yield from _of_pairs()


def _of_pairs() -> Iterator[Bad]:
    """A call without a result, and one with two."""
    asked, called, result = _called("{}")
    yield Bad("a call without a result", CHAT, {"messages": [asked, called, *SAID]}, "did not have response messages")
    yield Bad("two results of a call", CHAT, {"messages": [asked, called, result, result]}, "Duplicate value")
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "4"}
    yield Bad("a call without a result", RESPONSES, {"input": [call]}, "No tool output found")
    yield Bad("two results of a call", RESPONSES, {"input": [call, output, output]}, "Duplicate function call output")
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "f", "input": {}}]}
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": "4"}
    for route, more in ((MESSAGES, {"max_tokens": 4}), (COUNT, {})):
        alone = {"messages": [*SAID, used, *SAID], **more}
        yield Bad("a call without a result", route, alone, "`tool_use` ids were found without")
        late = {"role": "user", "content": [{"type": "text", "text": "Here:"}, block]}
        behind = {"messages": [*SAID, used, late], **more}
        yield Bad("text before a result", route, behind, "`tool_use` ids were found without")
        twice = {"messages": [*SAID, used, {"role": "user", "content": [block, block]}], **more}
        yield Bad("two results of a call", route, twice, "must have a single result")
