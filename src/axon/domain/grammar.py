"""The bounds of a grammar: how much a parser may hold and compute for one. Knows no grammar and no parser.

The gateway compiles a grammar within them before it accepts a request, and the engine computes masks within them, so
that a grammar which costs too much is its sender's error and nobody else's wait.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserLimits:
    """The limits of llguidance's parser, by their names there."""

    max_items_in_row: int = 2_000
    """Items in a row of the Earley parser: how ambiguous a grammar may be."""
    initial_lexer_fuel: int = 500_000
    """Steps to build the lexer, at about 50,000 in a millisecond."""
    step_lexer_fuel: int = 200_000
    """Steps of the lexer for one mask, at about 14,000 in a millisecond."""
    step_max_items: int = 50_000
    """Parser items for one mask, at about 20,000 in a millisecond."""
    max_lexer_states: int = 50_000
    """States that the lexer may build over a whole answer, at 1 to 2 kB each."""
    max_grammar_size: int = 200_000
    """Symbols in the grammar's productions."""


LIMITS = ParserLimits()
CLIENTS_RULES = "// rules of a client"
"""A comment in grammars whose rules a client wrote. Such rules may be ambiguous, and what an ambiguous grammar costs
grows with the square of its rows: one mask took more than a second, in which every stream of the engine waited."""
_CLIENTS_LIMITS = replace(LIMITS, max_items_in_row=300)


def limits_of(text: str) -> ParserLimits:
    """The limits that hold for a grammar."""
    return _CLIENTS_LIMITS if CLIENTS_RULES in text else LIMITS
