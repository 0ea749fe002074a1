"""Grammars of tool calls: what a model writes when it must call, or when its calls must follow their schemas.

Pure functions of the tools and the format; whether a schema is supported is for ``grammar_check`` to say.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from axon.domain.content.tool import CallMode, Tool, Toolbox
from axon.text import harmony
from axon.text.grammar import Grammar, embedded, lark_grammar, quoted
from axon.text.tools import hermes, mistral
from axon.text.tools.formats import CallFormat

Schema = Mapping[str, Any]
ANY: Schema = {"type": "object"}
"""The schema of any object."""
_FREE = "(.|\\n)"
_END_PARAMETER, _END_FUNCTION = quoted("\n</parameter>\n"), quoted("</function>\n")


def needs_grammar(toolbox: Toolbox) -> bool:
    """Whether calls are constrained: where one is required, and where a tool is strict."""
    offered = toolbox.offered
    return bool(offered) and (toolbox.choice.mode is CallMode.REQUIRED or any(tool.strict for tool in offered))


def schema_of(tool: Tool) -> Schema:
    """The schema of a tool's arguments, which are an object."""
    schema: dict[str, Any] = json.loads(tool.parameters) if tool.parameters else {}
    return {"type": "object", **schema}


def call_grammar(
    toolbox: Toolbox,
    format: CallFormat,
    marks: Mapping[str, int],
    schema: Callable[[Tool], Schema] = schema_of,
    form: Grammar | None = None,
) -> Grammar:
    """The grammar of an answer that calls these tools: nothing but calls where one is required, else text as well.

    ``marks`` are the format's words that are control tokens. ``schema`` gives the schema of a tool, which may be wider
    where its own is not supported. ``form`` is the grammar of the answer's text: an answer is then calls alone, or
    text of this form alone.
    """
    must, many = toolbox.choice.mode is CallMode.REQUIRED, toolbox.choice.parallel
    form = None if must else form
    rules = _Rules(marks, [(tool, schema(tool)) for tool in toolbox.offered], or_form=form is not None)
    must = must or form is not None
    match format:
        case CallFormat.HERMES:
            rules.tagged(rules.json_calls("arguments", "\n"), must=must, many=many)
        case CallFormat.QWEN3_CODER:
            rules.tagged(rules.element_calls(), must=must, many=many)
        case CallFormat.MISTRAL:
            rules.marked(must=must, many=many)
        case CallFormat.LLAMA_JSON:
            rules.whole(rules.json_calls("parameters", ""), "{", must=must)
        case CallFormat.PYTHONIC:
            calls = rules.python_calls()
            rules.whole(['"[" call (", " call)* "]"' if many else '"[" call "]"'], "[", must=must)
            rules.add("call", calls)
        case CallFormat.HARMONY:
            rules.messages(must=must)
    headed = format is CallFormat.HARMONY
    return replace(lark_grammar(rules.text), form=form.text if form else "", headed=headed)


class _Rules:
    """The Lark rules of one grammar, as they are written."""

    def __init__(
        self, marks: Mapping[str, int], tools: Sequence[tuple[Tool, Schema]], *, or_form: bool = False
    ) -> None:
        """``or_form``: where calls must come alone, text of the grammar ``@form`` may come instead of them."""
        self._marks, self._tools = marks, tools
        self._or_form = ["@form"] if or_form else []
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def add(self, name: str, alternatives: Sequence[str]) -> None:
        self._lines.append(f"{name}: " + " | ".join(alternatives))

    def tagged(self, calls: Sequence[str], *, must: bool, many: bool) -> None:
        """Calls between tags, with any text around them unless they must come alone."""
        opening, closing = self._mark(hermes.OPEN), self._mark(hermes.CLOSE)
        self._free(f"body {closing}", hermes.OPEN, "call" + (' ("\\n" call)*' if many else ""), must=must, many=many)
        self.add("call", [f"{opening} body {closing}"])
        self.add("body", calls)

    def marked(self, *, must: bool, many: bool) -> None:
        """Mistral's calls: a mark before a list of them, or before each of them."""
        mark = self._mark(mistral.CALLS)
        if mistral.ARGS in self._marks:
            self._free("body", mistral.CALLS, "call call*" if many else "call", must=must, many=many)
            self.add("call", [f"{mark} body"])
            named = [
                f"{quoted(tool.name)} {self._mark(mistral.ARGS)} {embedded(schema)}" for tool, schema in self._tools
            ]
            self.add("body", named)
            return
        more = '("," " "? each)*' if many else ""
        self._free(f'"[" each {more} "]"', mistral.CALLS, f'{mark} "[" each {more} "]"', must=must, many=False)
        self.add("each", self.json_calls("arguments", ""))

    def whole(self, calls: Sequence[str], sign: str, *, must: bool) -> None:
        """An answer that is a call or, where it need not be, text that begins with another character."""
        self.add("start", [*calls, *self._or_form] if must else [*calls, f"/[^\\{sign}]{_FREE}*/", '""'])

    def messages(self, *, must: bool) -> None:
        """Messages of the harmony format with their headers: one call, or text. A call ends the answer."""
        channel, message = self._mark(harmony.CHANNEL), self._mark(harmony.MESSAGE)
        constrain = self._mark(harmony.CONSTRAIN) if harmony.CONSTRAIN in self._marks else ""
        to_body = f"{constrain} {quoted('json')} {message}"
        calls = [
            f"{quoted(f'commentary to=functions.{tool.name} ')} {to_body} {embedded(schema)}"
            for tool, schema in self._tools
        ]
        texts = self._or_form if must else [f"/{_FREE}*/"]
        self.add("start", [f"{channel} call", *(f"{channel} {quoted('final')} {message} {text}" for text in texts)])
        self.add("call", calls)

    def _free(self, rest: str, mark: str, only: str, *, must: bool, many: bool) -> None:
        """The start: ``only`` where the answer must call; else text in which ``rest`` follows each ``mark``."""
        if must:
            self.add("start", [only, *self._or_form])
        elif mark in self._marks:
            once = f"({self._mark(mark)} {rest} text?)"
            self.add("start", [f"text? {once}{'*' if many else '?'}"])
            self._lines.append(f"text: /{_FREE}+/")
        else:
            self.add("start", [f"(to_call {rest}){'*' if many else '?'} tail?"])
            word = mark.replace("[", "\\[").replace("]", "\\]")
            self._lines.append(f"to_call[lazy]: /{_FREE}*{word}/")
            self._lines.append(f"tail: TAIL\nTAIL: /{_FREE}+/ & ~/{_FREE}*{word}{_FREE}*/")

    def json_calls(self, key: str, around: str) -> list[str]:
        """One alternative for each tool: an object with its name and arguments."""
        return [
            " ".join((*map(quoted, _object_head(tool.name, key, around)), embedded(schema), quoted("}" + around)))
            for tool, schema in self._tools
        ]

    def element_calls(self) -> list[str]:
        """One alternative for each tool: an element with an element for each parameter."""
        calls = []
        for number, (tool, schema) in enumerate(self._tools):
            head = quoted(f"\n<function={tool.name}>\n")
            parameters = []
            for index, (name, each, is_required) in enumerate(_properties(schema)):
                rule = f"p{number}_{index}"
                opening = quoted(f"<parameter={name}>\n")
                if each.get("type") == "string" and "enum" not in each:
                    self._lines.append(f"{rule}_value[lazy]: /{_FREE}*\\n<\\/parameter>\\n/")
                    self.add(rule, [f"{opening} {rule}_value"])
                else:
                    self.add(rule, [" ".join((opening, _bare(each), _END_PARAMETER))])
                parameters.append(rule if is_required else f"{rule}?")
            calls.append(" ".join((head, *parameters, _END_FUNCTION)))
        return calls

    def python_calls(self) -> list[str]:
        """One alternative for each tool: a call with keyword arguments, whose values are JSON."""
        calls = []
        for number, (tool, schema) in enumerate(self._tools):
            properties = [
                (f"{quoted(name + '=')} {embedded(each)}", is_required)
                for name, each, is_required in _properties(schema)
            ]
            self._arguments(f"a{number}", properties)
            calls.append(f'{quoted(tool.name + "(")} a{number}_head_0 ")"')
        return calls

    def _arguments(self, name: str, terms: Sequence[tuple[str, bool]]) -> None:
        """Rules of a list with commas between those terms that are there; not every term need be."""
        for index, (term, is_required) in enumerate(terms):
            head, tail = f"{name}_head_{index}", f"{name}_tail_{index}"
            more = f"{name}_tail_{index + 1}"
            self.add(head, [f"{term} {more}"] + ([] if is_required else [f"{name}_head_{index + 1}"]))
            self.add(tail, [f'", " {term} {more}'] + ([] if is_required else [more]))
        self.add(f"{name}_head_{len(terms)}", ['""'])
        self.add(f"{name}_tail_{len(terms)}", ['""'])

    def _mark(self, word: str) -> str:
        """A word of the format: its control token where it is one, else its text."""
        return f"<[{self._marks[word]}]>" if word in self._marks else quoted(word)


def _object_head(name: str, key: str, before: str) -> tuple[str, ...]:
    """The text of a call up to its arguments, cut as the lexer cuts JSON: it takes the longest lexeme that it can, so
    that a head in one piece would shut out every other object that begins with the same key."""
    return (before + "{", '"name"', ":", " ", f'"{name}"', ",", " ", f'"{key}"', ":", " ")


def _properties(schema: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """The properties of an object with their schemas, and whether each is required."""
    properties, required = schema.get("properties"), schema.get("required")
    shared = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    for name, each in properties.items() if isinstance(properties, dict) else ():
        own = {**shared, **each} if isinstance(each, dict) else shared
        yield name, own, name in (required if isinstance(required, list) else ())


def _bare(schema: Schema) -> str:
    """A value as Qwen3-Coder writes it: the words of an enumeration bare, everything else as JSON."""
    words = schema.get("enum")
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        return "(" + " | ".join(map(quoted, words)) + ")"
    return embedded(schema)
