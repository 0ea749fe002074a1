"""Compiles a grammar within its limits to see whether it can be used, without a model. Knows no request.

It uses a tokenizer of single bytes: what compiles with that compiles with every model's tokenizer, and a gateway needs
no tables of tokens.
"""

from dataclasses import asdict

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

from axon.domain.byte_tokens import EOS_ID, ByteTokens
from axon.domain.grammar import limits_of
from axon.text.grammar import Grammar

_MAX_FORCED_BYTES = 4096
"""A grammar may begin with this many bytes that have no alternative; one that goes on without an end has more."""
_MAX_CHARS = 500
"""Characters of the compiler's own words in an error."""


def byte_tokenizer() -> LLTokenizer:
    """The byte tokenizer, for llguidance."""
    return LLTokenizer(TokenizerWrapper(ByteTokens()), eos_token=[EOS_ID])


class GrammarCheck:
    """Says what is wrong with grammars. It may be called from several threads; compiling lets others run meanwhile."""

    def __init__(self) -> None:
        self._tokenizer = byte_tokenizer()

    def problem(self, grammar: Grammar) -> str:
        """Why the grammar cannot be used, in the compiler's words; empty if it can."""
        limits = LLParserLimits(**asdict(limits_of(grammar.text)), verbose_errors=False)
        matcher = LLMatcher(self._tokenizer, grammar.after(""), log_level=0, limits=limits)
        if not matcher.is_error():
            matcher.compute_bitmask()  # first: it lets other threads run, and finds the forced bytes on its way
            if len(matcher.compute_ff_bytes()) > _MAX_FORCED_BYTES:
                return f"it allows nothing but one text of more than {_MAX_FORCED_BYTES} bytes, or one without an end"
        return _told(matcher.get_error())


def _told(error: str) -> str:
    if "NoExtension" in error:
        return "nothing can follow it: it allows no text at all"
    if "coerce_one_of" in error:
        return "'oneOf' is not supported where its alternatives may overlap; use 'anyOf'"
    if "Failed to generate regex for" in error:
        return "a number in 'minimum' or 'maximum' is too large; they are supported below 10^18"
    return error.replace("<non-verbose/>", "").strip()[:_MAX_CHARS]
