"""Messages of natural chats, one JSON object a line: a kind, a language and the text. Asks nobody."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHAT = Path(__file__).resolve().parents[1] / "corpora" / "chat.jsonl"
KINDS = ("question", "code", "summary", "rewrite", "writing")


class BadCorpus(Exception):
    """A line of the corpus cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a user asks first in a chat."""

    kind: str
    language: str
    """ISO 639-1: ``en``, ``de``, …"""
    text: str


def read_corpus(path: Path = CHAT) -> list[Message]:
    """All messages in the order of the file; raises BadCorpus with the number of the first bad line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return parse_corpus(lines)


def parse_corpus(lines: Sequence[str]) -> list[Message]:
    """One message a line, none of them twice: a prefix cache would answer the second one sooner."""
    found: list[Message] = []
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        try:
            message = Message(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise BadCorpus(f"line {number}: {error}") from None
        if message.kind not in KINDS:
            raise BadCorpus(f"line {number}: the kind {message.kind!r} is none of {', '.join(KINDS)}")
        if not message.text.strip() or message.text in seen:
            raise BadCorpus(f"line {number}: the text is empty or stands above already")
        seen.add(message.text)
        found.append(message)
    return found
