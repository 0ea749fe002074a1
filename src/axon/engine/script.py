"""The answers of a scripted echo engine: each is chosen by the prompt's text alone, so that a replay says the same."""

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from axon.errors import Misconfigured

_MOST_KEPT = 1024
"""Answers kept by sequence, so that the regexes are searched once for a sequence and not once for a token."""


class Line(msgspec.Struct, frozen=True, rename={"pattern": "if"}):
    """One answer, and the regex that a prompt must have for it."""

    pattern: str
    say: str


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    token_ids: bytes


class Script:
    """Answers prompts of the byte tokenizer by the first line whose regex is found in the prompt."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._rules = [_Rule(re.compile(line.pattern, re.DOTALL), line.say.encode()) for line in lines]
        self._kept: OrderedDict[tuple[str, int], bytes | None] = OrderedDict()

    def answer(self, sequence: tuple[str, int], prompt_ids: Callable[[], Sequence[int]]) -> bytes | None:
        """The token ids that a sequence is answered with, without the end token; None if no line answers.

        ``sequence`` is its id and arrival.
        """
        if sequence not in self._kept:
            self._kept[sequence] = self._find(prompt_ids())
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return self._kept[sequence]

    def _find(self, prompt_ids: Sequence[int]) -> bytes | None:
        text = bytes(token_id for token_id in prompt_ids if token_id < 256).decode(errors="replace")
        return next((rule.token_ids for rule in self._rules if rule.pattern.search(text)), None)


def open_script(path: str) -> Script | None:
    """Reads a script; None without a path. Raises ``Misconfigured`` if the file holds none."""
    if not path:
        return None
    try:
        return Script(msgspec.json.decode(Path(path).read_bytes(), type=list[Line]))
    except (OSError, msgspec.DecodeError, re.error) as error:
        raise Misconfigured(f"engine.echo_script = {path} cannot be read: {error}") from error
