"""Grammars that an answer must follow, as llguidance reads them: made of a JSON schema, a regex, a list or Lark rules.

Pure functions of what the client sent. Whether a grammar compiles is for ``grammar_check`` to say; which tokens it
allows, for the engine.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llguidance import LLMatcher
from llguidance.gbnf_to_lark import gbnf_to_lark

from axon.domain.grammar import CLIENTS_RULES
from axon.errors import InvalidInput
from axon.text.grammar_bounds import check_grammar
from axon.text.harmony import HARMONY
from axon.text.reasoning import CLOSE, OPEN
from axon.text.regex_size import written_out

_MAX_WRITTEN_OUT = 8_000
"""Characters of a client's regex or grammar with its repeats written out."""
_COMPACT = {"whitespace_flexible": False}
"""Options of every schema: JSON without white space, which a model could otherwise write for ever."""
_THOUGHT = r"/(.|\n)*" + CLOSE.replace("/", r"\/") + "/"
_HEADER = '<|channel|> "final" <|message|>'
_MUSING = '(<|channel|> "analysis" <|message|> musing <|end|> <|start|> "assistant")?'
_MUSING_TEXT = "musing: /(.|\\n)*/\n"
_BEFORE_HEADERS = f"start: {_MUSING} @answer\n{_MUSING_TEXT}"
_AFTER_THOUGHT = {
    HARMONY: f"start: {_MUSING} {_HEADER} @answer\n{_MUSING_TEXT}",
    "text": f'start: ("{OPEN}" thought gap)? @answer\n',
    "inside": "start: thought gap @answer\n",
}
"""By the answer's reasoning mode: the rule that lets a model think freely before the grammar begins."""
_THINKING = f"thought[lazy]: {_THOUGHT}\ngap: /[ \\n]{{0,4}}/\n"
_MAX_GRAMMAR_CHARS, _MAX_RULES = 24_000, 500
"""Characters and rules of a client's grammar, whose conversion from GBNF takes time with the square of its rules."""
_LARK = re.compile(r"^[^\S\n]*(%llguidance\b|start\s*:)", re.MULTILINE)
"""What a Lark grammar has and a GBNF grammar has not."""
_GBNF_HEAD = "%llguidance {}\n"
"""The first line of what GBNF is converted to."""
_DIRECTIVE = re.compile(r"%(?!ignore\b)\w*|<[^\n>]{0,40}|@\w*")
"""What a client's Lark grammar may not have: directives other than %ignore, control tokens and other grammars."""
_QUOTED = re.compile(r'//[^\n]*|#[^\n]*|"(?:\\.|[^"\\\n])*(?P<text_end>"?)|/(?:\\.|[^/\\\n])*(?P<regex_end>/?)')
"""Comments, texts and regexes of a Lark grammar. It matches those without an end too, so that it reads no character
twice; a grammar that has one is refused, as nobody can say what is quoted in it."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar of an answer without its reasoning."""

    text: str
    """One of llguidance's grammar objects, as JSON: ``{"json_schema": …}`` or ``{"lark_grammar": …}``."""
    form: str = ""
    """The grammar object that Lark rules of ``text`` name ``@form``; empty if they do not."""
    headed: bool = False
    """Whether it has the headers of messages in the harmony format itself."""

    def after(self, reasoning: str) -> str:
        """The text that ``Sampling.grammar`` takes, for an answer of this reasoning mode: the grammar begins after the
        reasoning, if there is any."""
        form = f',{{"name":"form",{self.form[1:]}' if self.form else ""
        if not reasoning:
            return f'{{"grammars":[{self.text}{form}]}}'
        before = _BEFORE_HEADERS if self.headed and reasoning == HARMONY else _AFTER_THOUGHT[reasoning]
        outer = _encoded({"lark_grammar": before + _THINKING})
        return f'{{"grammars":[{outer},{{"name":"answer",{self.text[1:]}{form}]}}'


def schema_grammar(schema: Mapping[str, Any]) -> Grammar:
    """The grammar of the compact JSON that a schema allows."""
    return Grammar(_encoded({"json_schema": _options_set(schema)}))


def json_object_grammar() -> Grammar:
    """The grammar of any JSON object."""
    return schema_grammar({"type": "object"})


def regex_grammar(regex: str) -> Grammar:
    """The grammar of a regular expression, which the whole answer matches; it may be anchored or not."""
    _check_size(regex)
    bare = regex.removeprefix("^")
    if bare.endswith("$") and not re.search(r"(?<!\\)(\\\\)*\\\$\Z", bare):
        bare = bare[:-1]
    [found] = json.loads(LLMatcher.grammar_from_regex(bare))["grammars"]
    return lark_grammar(found["lark_grammar"])


def choice_grammar(choices: Sequence[str]) -> Grammar:
    """The grammar of one of these texts."""
    return lark_grammar("start: " + " | ".join(map(quoted, choices)))


def client_grammar(text: str) -> Grammar:
    """The grammar of a client's own rules: Lark, or the GBNF that llama.cpp reads."""
    if len(text) > _MAX_GRAMMAR_CHARS or text.count("::=") > _MAX_RULES:
        raise _invalid(f"it is too large: it may have {_MAX_GRAMMAR_CHARS} characters and {_MAX_RULES} rules")
    if _LARK.search(text):
        lark = text
    else:
        try:
            lark = gbnf_to_lark(text).removeprefix(_GBNF_HEAD)
        except Exception as error:  # the converter raises no narrower class
            raise _invalid(f"the grammar is neither Lark nor GBNF: {error}") from None
    if found := _DIRECTIVE.search(_QUOTED.sub(_unquoted, lark)):
        raise _invalid(
            f"'{found[0].strip()[:60]}' is not supported in a grammar: it may have rules, terminals and %ignore"
        )
    _check_size(lark)
    check_grammar(lark)
    return lark_grammar(f"{CLIENTS_RULES}\n{lark}")


def _unquoted(found: re.Match[str]) -> str:
    if found["text_end"] == "" or found["regex_end"] == "":
        raise _invalid(f"'{found[0][:40]}' has no end on its line")
    return '""'


def _invalid(problem: str) -> InvalidInput:
    return InvalidInput(problem, code="invalid_grammar")


def lark_grammar(text: str) -> Grammar:
    """The grammar of Lark rules that are our own; the first is called ``start``."""
    return Grammar(_encoded({"lark_grammar": text}))


def quoted(text: str) -> str:
    """A text as a string of a Lark rule."""
    return _encoded(text)


def embedded(schema: Mapping[str, Any]) -> str:
    """A schema as a term of a Lark rule: ``start: "<tool_call>" <this> "</tool_call>"``."""
    return f"%json {_encoded(_options_set(schema))}"


def _check_size(text: str) -> None:
    if (size := written_out(text)) > _MAX_WRITTEN_OUT:
        raise _invalid(
            f"it is too large: with repeats written out, it has {size} characters, and may have {_MAX_WRITTEN_OUT}"
        )


def _options_set(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with our options, whatever options the client wrote into it."""
    return {**schema, "x-guidance": _COMPACT}


def _encoded(value: Any) -> str:
    """The value as JSON. It may have whole numbers of any size, which msgspec would not write."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
