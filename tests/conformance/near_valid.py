"""Requests of the routes that take tools, schemas and messages: valid ones, and such that a few values are wrong in.

Random JSON is refused at its first field; these get as far as the templates, the grammars and the prompts.
"""

import copy
from typing import Any

from hypothesis import strategies as st

Json = Any
JUNK: list[Json] = [
    *(None, True, 0, -1, 1.5, 1e308, 10**30, "", "\u0000", "a\ud800".encode("utf-8", "ignore").decode(), "x" * 300),
    *([], {}, [[]], [None], {"": {}}, {"type": "object"}, {"type": []}, "auto", "none", "function", "{", "$ref", "#"),
]
junk = st.sampled_from(JUNK)
text = st.sampled_from(["", "hi", "{}", '{"a":1}', "[1]", "<think>", "</think>", "<tool_call>", "é😀", "<|im_end|>"])
name = st.sampled_from(["f", "g", "get_weather", "a-b", "0", "x" * 64, "x" * 65, "ä", ""])
call_id = st.sampled_from(["call_1", "call_2", "toolu_1", ""])
leaf: st.SearchStrategy[Json] = st.sampled_from(
    [
        *({"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "number", "multipleOf": 0.1}, {"const": "a"}),
        *({"enum": ["a", 1, None]}, {"enum": []}, {"type": "string", "format": "date"}, {"format": "nothing"}),
        *({"type": "string", "pattern": "^a+$"}, {"pattern": "("}, {"pattern": "(?=a)"}, {"$ref": "#"}, True, False),
        *({"$ref": "#/$defs/x"}, {"$ref": "http://a/b"}, {"not": {}}, {"type": "array", "minItems": 10**9}),
        *({"maxLength": -1}, {"type": ["string", "null"]}, {"multipleOf": 0}, {"minimum": 10**40}),
    ]
)


def _nested(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    properties = st.dictionaries(st.sampled_from(["a", "b", "", 'q"', "é"]), inner, max_size=3)
    several = st.lists(inner, max_size=3)
    return (
        st.builds(
            lambda each, needed, more: {
                "type": "object",
                "properties": each,
                "required": needed,
                "additionalProperties": more,
            },
            properties,
            st.lists(st.sampled_from(["a", "b", "z"]), max_size=3),
            st.booleans() | inner,
        )
        | st.builds(lambda each: {"type": "array", "items": each, "maxItems": 3}, inner)
        | st.builds(lambda key, each: {key: each}, st.sampled_from(["anyOf", "oneOf", "allOf", "prefixItems"]), several)
        | st.builds(lambda each: {"$defs": {"x": each}, "$ref": "#/$defs/x"}, inner)
    )


schemas = st.recursive(leaf, _nested, max_leaves=6).filter(lambda each: isinstance(each, dict))


def fields(required: dict[str, st.SearchStrategy[Json]], **optional: st.SearchStrategy[Json]) -> Any:
    return st.fixed_dictionaries(required, optional=optional)


functions = fields({"name": name, "parameters": schemas}, description=text, strict=st.booleans())
tools = st.lists(fields({"type": st.sampled_from(["function", "function", "mcp"]), "function": functions}), max_size=3)
flat_tools = st.lists(functions.map(lambda each: {"type": "function", **each}), max_size=3)
claude_tools = st.lists(
    fields({"name": name, "input_schema": schemas}, description=text, strict=st.booleans()), max_size=3
)
word = st.sampled_from(["none", "auto", "required", "any", "tool"])
named = name.map(lambda each: {"type": "function", "function": {"name": each}})
allowed = name.map(
    lambda each: {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": each}}]},
    }
)
calls = st.lists(
    st.builds(
        lambda id, each, said: {"id": id, "type": "function", "function": {"name": each, "arguments": said}},
        call_id,
        name,
        text,
    ),
    max_size=2,
)


def in_pairs(each: st.SearchStrategy[Json], pair: st.SearchStrategy[list[Json]]) -> st.SearchStrategy[list[Json]]:
    """Messages in any order, and calls with their results among them."""
    steps = st.lists(each.map(lambda one: [one]) | pair, min_size=1, max_size=4)
    return steps.map(lambda given: [message for step in given for message in step])


messages = in_pairs(
    fields({"role": st.just("user"), "content": text | st.lists(text.map(lambda s: {"type": "text", "text": s}))})
    | fields({"role": st.just("assistant")}, content=text | st.none(), tool_calls=calls)
    | fields({"role": st.just("tool"), "tool_call_id": call_id, "content": text})
    | fields({"role": st.sampled_from(["system", "developer"]), "content": text}),
    calls.map(
        lambda made: [
            {"role": "assistant", "tool_calls": made},
            *({"role": "tool", "tool_call_id": each["id"], "content": "4"} for each in made),
        ]
    ),
)
blocks = st.lists(
    text.map(lambda each: {"type": "text", "text": each})
    | text.map(lambda each: {"type": "thinking", "thinking": each, "signature": ""})
    | st.builds(
        lambda id, each, given: {"type": "tool_use", "id": id, "name": each, "input": given},
        call_id,
        name,
        st.sampled_from([{}, {"a": [1]}, None]),
    )
    | st.builds(lambda id, said: {"type": "tool_result", "tool_use_id": id, "content": said}, call_id, text)
    | st.just({"type": "image", "source": {}}),
    max_size=3,
)
claude_messages = in_pairs(
    fields({"role": st.sampled_from(["user", "assistant"]), "content": text | blocks}),
    st.builds(
        lambda id, each, said: [
            {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": each, "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": said}]},
        ],
        call_id,
        name,
        text,
    ),
)
items = in_pairs(
    fields({"role": st.sampled_from(["user", "assistant", "developer"]), "content": text})
    | st.builds(
        lambda id, each, said: {"type": "function_call", "call_id": id, "name": each, "arguments": said},
        call_id,
        name,
        text,
    )
    | st.builds(lambda id, said: {"type": "function_call_output", "call_id": id, "output": said}, call_id, text)
    | st.just({"type": "reasoning", "summary": []}),
    st.builds(
        lambda id, each: [
            {"type": "function_call", "call_id": id, "name": each, "arguments": "{}"},
            {"type": "function_call_output", "call_id": id, "output": "4"},
        ],
        call_id,
        name,
    ),
)
json_schema = st.builds(lambda each, of: {"name": each, "schema": of, "strict": True}, name, schemas)
response_format = st.sampled_from(
    [{"type": "text"}, {"type": "json_object"}, {"type": "json_schema"}]
) | json_schema.map(lambda each: {"type": "json_schema", "json_schema": each})
text_format = st.sampled_from([{"type": "text"}, {"type": "json_object"}]) | json_schema.map(
    lambda each: {"type": "json_schema", **each}
)
regex = st.sampled_from(["[a-c]+", "(", "a{1000000}", "^x$", "(?=a)", "\\p{L}", "(a|b)*", "[[:alpha:]]", "\\", "a&b"])
rules = st.sampled_from(
    ['start: "a"', 'root ::= "a" | "b"', "start: start", "start: x", "x", 'start: "a" %json {}', "start: /(/", "::="]
)
choices = st.lists(text, max_size=3)
structured = (
    schemas.map(lambda each: {"json": each})
    | regex.map(lambda each: {"regex": each})
    | choices.map(lambda each: {"choice": each})
    | rules.map(lambda each: {"grammar": each})
    | st.sampled_from([{}, {"json_object": True}, {"json": "{"}, {"json": {}, "regex": "a"}, {"structural_tag": {}}])
)
template_kwargs = st.dictionaries(
    st.sampled_from(["enable_thinking", "messages", "tools", "add_generation_prompt", "x", "bos_token"]),
    junk | st.booleans(),
    max_size=3,
)
effort = st.sampled_from(["none", "minimal", "low", "high", "xhigh", "", "most"])
_SHARED = {"stream": st.booleans(), "temperature": st.sampled_from([0, 1]), "seed": st.just(1)}
_FORMS = {
    "response_format": response_format,
    "structured_outputs": structured,
    "guided_json": schemas,
    "guided_regex": regex,
    "guided_choice": choices,
    "guided_grammar": rules,
}
_MODEL = st.just("echo")
_NUM = st.sampled_from([1, 4, 16])
OPERATIONS: dict[str, st.SearchStrategy[Json]] = {
    "/v1/chat/completions": fields(
        {"model": _MODEL, "messages": messages, "max_tokens": _NUM},
        **_SHARED,
        **_FORMS,
        tools=tools,
        tool_choice=word | named | allowed,
        parallel_tool_calls=st.booleans(),
        chat_template_kwargs=template_kwargs,
        reasoning_effort=effort,
        n=st.sampled_from([1, 2]),
    ),
    "/v1/completions": fields({"model": _MODEL, "prompt": text, "max_tokens": _NUM}, **_SHARED, **_FORMS),
    "/v1/responses": fields(
        {"model": _MODEL, "input": items | text, "max_output_tokens": _NUM},
        **_SHARED,
        text=text_format.map(lambda each: {"format": each}),
        tools=flat_tools,
        tool_choice=word | name.map(lambda each: {"type": "function", "name": each}),
        parallel_tool_calls=st.booleans(),
        reasoning=effort.map(lambda each: {"effort": each}),
        chat_template_kwargs=template_kwargs,
        instructions=text,
    ),
    "/v1/messages": fields(
        {"model": _MODEL, "messages": claude_messages, "max_tokens": _NUM},
        **_SHARED,
        tools=claude_tools,
        tool_choice=st.builds(lambda kind, each: {"type": kind, "name": each}, word, name),
        system=text | st.lists(text.map(lambda each: {"type": "text", "text": each})),
        thinking=st.sampled_from([{"type": "enabled", "budget_tokens": 8}, {"type": "disabled"}, {"type": "adaptive"}]),
        stop_sequences=st.lists(text, max_size=2),
        output_config=st.sampled_from([{"effort": "high"}, {"format": {"type": "json_schema", "schema": {}}}]),
        metadata=st.just({"user_id": "me"}),
    ),
    "/v1/messages/count_tokens": fields(
        {"model": _MODEL, "messages": claude_messages},
        tools=claude_tools,
        tool_choice=st.builds(lambda kind, each: {"type": kind, "name": each}, word, name),
        system=text,
        thinking=st.just({"type": "enabled", "budget_tokens": 8}),
    ),
    "/v1/responses/input_tokens": fields(
        {"model": _MODEL, "input": items | text}, tools=flat_tools, chat_template_kwargs=template_kwargs
    ),
}


@st.composite
def bodies(draw: st.DrawFn, valid: st.SearchStrategy[Json]) -> Json:
    """A body like these; in two of three a few values anywhere in it are replaced, left out or doubled."""
    body = copy.deepcopy(draw(valid))
    for _ in range(draw(st.sampled_from([0, 1, 2])) if body else 0):
        holder, key = draw(st.sampled_from(_places(body)))
        match draw(st.sampled_from(["replace", "replace", "remove", "double"])):
            case "replace":
                holder[key] = copy.deepcopy(draw(junk))  # it may be changed in turn
            case "remove":
                del holder[key]
            case "double":
                holder[key] = [holder[key], copy.deepcopy(holder[key])]
        if not body:
            break
    return body


def _places(node: Json) -> list[tuple[Json, Any]]:
    """Every place of a value inside a JSON value."""
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in [(node, key), *_places(node[key])]]
