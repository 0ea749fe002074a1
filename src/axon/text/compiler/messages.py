"""The messages between a gateway and the process that compiles its grammars, as msgpack. Does no I/O."""

import hashlib
from dataclasses import dataclass
from typing import Literal

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A grammar that a client asks for."""

    kind: Literal["schema", "grammar", "regex", "rules"]
    """``schema`` and ``grammar``: ``text`` is that of a ``Grammar``, and only a schema has the bounds of a schema.
    ``regex`` and ``rules``: ``text`` is the client's own, of which a grammar is made first."""
    text: str
    form: str = ""
    """``Grammar.form``."""

    @property
    def digest(self) -> bytes:
        """Returns 16 bytes that stand for the whole task."""
        found = hashlib.blake2b(f"{self.kind} {len(self.form)} ".encode(), digest_size=16)
        found.update(self.form.encode())
        found.update(self.text.encode())
        return found.digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a task."""

    problem: str = ""
    """Why the grammar cannot be used; empty if it can."""
    made: str = ""
    """The text of the grammar that was made of a regex or of rules."""
    cpu_s: float = 0.0
    """Seconds of processor time that it took."""

    @property
    def num_bytes(self) -> int:
        """Returns about how much memory the texts take."""
        return len(self.problem) + len(self.made)


_ENCODER = msgspec.msgpack.Encoder()
_TASK, _RESULT = msgspec.msgpack.Decoder(Task), msgspec.msgpack.Decoder(Result)


def encode(message: Task | Result) -> bytes:
    """Returns the message as the body of a frame."""
    return _ENCODER.encode(message)


def decode_task(body: bytes) -> Task:
    """Returns the task in the body of a frame."""
    return _TASK.decode(body)


def decode_result(body: bytes) -> Result:
    """Returns the result in the body of a frame; raises ``msgspec.MsgspecError`` if it is none."""
    return _RESULT.decode(body)
