"""The form that a request asks of its answer: text, JSON, a regex, one of several texts or a grammar. Knows no HTTP.

OpenAI's ``response_format`` and Responses' ``text.format``, vLLM's ``structured_outputs`` and its older ``guided_*``
fields all say the same thing; ``form_of`` finds the one that a request sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Many, Wire, at_most
from axon.sessions.grammars import TenantGrammars
from axon.text.grammar import Grammar, choice_grammar, json_object_grammar

Schema = Annotated[dict[str, Any], *at_most(1024)]
SchemaName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")]
Regex = Annotated[str, Field(min_length=1, max_length=8192)]
Choices = Annotated[Many[Annotated[str, Field(max_length=1024)]], Field(min_length=1, max_length=500)]
Rules = Annotated[str, Field(min_length=1, max_length=64 << 10)]
FormatType = Literal["text", "json_object", "json_schema"]


class NamedSchema(Wire):
    """A JSON schema with a name."""

    name: SchemaName
    description: str | None = None
    schema_: Annotated[Schema | None, Field(alias="schema")] = None
    strict: bool | None = None
    """The answer follows the schema whether it is set or not."""


class ResponseFormat(Wire):
    """Chat's ``response_format``."""

    type: FormatType
    json_schema: NamedSchema | None = None
    schema_: Annotated[Schema | None, Field(alias="schema")] = None
    """The schema of a ``json_object``, where llama.cpp's clients and others put it."""


class TextFormat(Wire):
    """Responses' ``text.format``, which has the schema's fields itself."""

    type: FormatType = "text"
    name: SchemaName | None = None
    description: str | None = None
    schema_: Annotated[Schema | None, Field(alias="schema")] = None
    strict: bool | None = None


class StructuredOutputs(Wire):
    """vLLM's ``structured_outputs``: one of its fields says what the answer must be."""

    json_: Annotated[Schema | str | None, Field(alias="json")] = None
    regex: Regex | None = None
    choice: Choices | None = None
    grammar: Rules | None = None
    json_object: bool | None = None
    structural_tag: Any = None
    whitespace_pattern: str | None = None
    disable_additional_properties: bool | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The form that an answer must have, and the field that asks for it."""

    kind: Literal["json_object", "json", "regex", "choice", "grammar"]
    value: Any
    param: str


class Structured(Wire):
    """The fields that chats and completions take for the form of an answer. At most one of them may ask for one."""

    response_format: ResponseFormat | None = None
    """``{"type": "json_object"}`` or ``{"type": "json_schema", "json_schema": {"name", "schema"}}``: the answer is JSON
    without white space that follows the schema. ``{"type": "text"}`` changes nothing."""
    structured_outputs: StructuredOutputs | None = None
    """The form of the answer, as vLLM's clients ask for it: an object with one of ``json`` (a schema), ``regex``,
    ``choice`` (a list of texts), ``grammar`` (Lark or GBNF) or ``json_object``."""
    guided_json: Schema | str | None = None
    """Older name of ``structured_outputs.json``."""
    guided_regex: Regex | None = None
    """Older name of ``structured_outputs.regex``."""
    guided_choice: Choices | None = None
    """Older name of ``structured_outputs.choice``."""
    guided_grammar: Rules | None = None
    """Older name of ``structured_outputs.grammar``."""

    @property
    def form(self) -> Form | None:
        """The form that the answer must have; None for any text. Raises ``InvalidInput`` if two are asked for."""
        outputs = self.structured_outputs
        found = [_of_response_format(self.response_format)]
        if outputs is not None:
            _check_options(outputs)
            found += _of_parts("structured_outputs.", outputs.json_, outputs.regex, outputs.choice, outputs.grammar)
            found.append(Form("json_object", None, "structured_outputs.json_object") if outputs.json_object else None)
        found += _of_parts("guided_", self.guided_json, self.guided_regex, self.guided_choice, self.guided_grammar)
        asked = [form for form in found if form is not None]
        if len(asked) > 1:
            raise InvalidInput(
                f"'{asked[0].param}' and '{asked[1].param}' cannot be used together.",
                param=asked[1].param,
                code="mutually_exclusive_parameters",
            )
        return asked[0] if asked else None


def _of_response_format(given: ResponseFormat | None) -> Form | None:
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return _named(given.schema_, "response_format.schema" if given.schema_ is not None else "response_format")
    if given.json_schema is None:
        raise _missing("response_format.json_schema")
    return _named(given.json_schema.schema_, "response_format.json_schema.schema")


def form_of_text(given: TextFormat | None) -> Form | None:
    """The form that Responses' ``text.format`` asks for."""
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return _named(given.schema_, "text.format.schema" if given.schema_ is not None else "text.format")
    if given.name is None:
        raise _missing("text.format.name")
    return _named(given.schema_, "text.format.schema")


def _named(schema: Schema | None, param: str) -> Form:
    """OpenAI lets a schema be left out; any object is right then."""
    return Form("json_object", None, param) if schema is None else Form("json", schema, param)


def _of_parts(prefix: str, *values: Any) -> list[Form | None]:
    kinds: tuple[Literal["json", "regex", "choice", "grammar"], ...] = ("json", "regex", "choice", "grammar")
    return [
        None if value is None else Form(kind, value, prefix + kind) for kind, value in zip(kinds, values, strict=True)
    ]


def _check_options(outputs: StructuredOutputs) -> None:
    for name in ("structural_tag", "whitespace_pattern", "disable_additional_properties"):
        if getattr(outputs, name):
            param = f"structured_outputs.{name}"
            raise Unsupported(f"'{param}' is not supported by this server.", param=param)


async def grammar_of(grammars: TenantGrammars, form: Form | None) -> Grammar | None:
    """The grammar of a form, checked; None for any text. Raises ``InvalidInput`` that names the field."""
    if form is None:
        return None
    match form.kind:
        case "json_object":
            return json_object_grammar()
        case "json":
            return await grammars.schema(_schema(form), param=form.param)
        case "choice":
            return await grammars.checked(choice_grammar(form.value), param=form.param)
        case "regex" | "grammar":
            kind: Literal["regex", "rules"] = "regex" if form.kind == "regex" else "rules"
            return await grammars.made(kind, form.value, param=form.param)


def _schema(form: Form) -> Mapping[str, Any]:
    """The schema, which vLLM's clients may send as the text of a JSON object."""
    schema = form.value
    if isinstance(schema, str):
        try:
            schema = msgspec.json.decode(schema)
        except RecursionError:
            message = f"Invalid schema for '{form.param}': it is nested too deeply."
            raise InvalidInput(message, param=form.param, code="invalid_schema") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"'{form.param}' is not valid JSON: {error}.", param=form.param) from None
    if not isinstance(schema, dict):
        raise InvalidInput(f"'{form.param}' must be a JSON object.", param=form.param, code="invalid_type")
    return schema


def _missing(param: str) -> InvalidInput:
    return InvalidInput(f"'{param}' is missing.", param=param, code="missing_required_parameter")
