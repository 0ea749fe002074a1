"""Reads a request's body within its limits and parses it in time linear in its bytes. Knows no field's meaning.

Only the fields that a request declares are decoded; any other field is skipped and creates no object. The values in the
declared fields are counted in the raw bytes before they are decoded, and validation of a list stops at its first error.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticKnownError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from axon.errors import InvalidInput, Overloaded, TooLarge, Unsupported
from axon.gateway.config import GatewayConfig
from axon.gateway.http.errors import ClientLeft, Timeout
from axon.gateway.http.held_bodies import HELD_BODY, HeldBodies, HeldBody

MAX_PARTS = 1 << 17
"""The declared fields of a body may hold this many strings (field names included), lists and objects together."""
MAX_VALUES = 1 << 18
"""The declared fields of a body may hold this many values of any kind together, numbers included: a decoded number
takes up to 10 times the memory of its bytes. A model with a longer context raises it: see ``Bodies.allow_prompts``."""
_LARGE_BYTES = 32 << 10
"""A body of this many bytes or more is parsed in a thread, so that it does not block the event loop."""
_PARSE_TIMEOUT_S = 10.0
"""A large body that waits longer than this for the thread is refused with 503."""
_MAX_NAME_CHARS = 64
"""An error repeats at most this many characters of a field's name, which the client chose."""
_MAX_DEPTH_ERROR = "The body is nested too deeply."

T = TypeVar("T")
Many = Annotated[list[T], Field(fail_fast=True)]
"""A list whose validation stops at its first wrong entry, so that a body of wrong entries costs one error."""


class Wire(BaseModel):
    """Base of the models of request bodies and of the objects in them: strict types, unknown fields ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, use_attribute_docstrings=True)
    max_parts: ClassVar[int] = MAX_PARTS
    max_parts_of: ClassVar[Mapping[str, int]] = {}
    """Smaller bounds for single fields, by name."""


W = TypeVar("W", bound=Wire)


def at_most(num_entries: int) -> Any:
    """Returns annotations that bound the entries of an object with client-chosen names, before any is validated."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > num_entries:
            facts = {"field_type": "Dictionary", "max_length": num_entries, "actual_length": len(value)}
            raise PydanticKnownError("too_long", facts)
        return value

    return Field(max_length=num_entries), BeforeValidator(check)


_ABSENT = msgspec.Raw()
"""Stands for a field that a body does not have."""


class Bodies:
    """Reads and parses bodies. Large ones are parsed in one thread, one after another, so that many at once take the
    memory of one."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._held = HeldBodies(
            max_bytes=max(config.max_held_body_bytes, config.max_body_bytes),
            max_tenant_bytes=max(config.max_tenant_body_bytes, config.max_body_bytes),
        )
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bodies")
        self._max_values = MAX_VALUES

    async def read(self, request: Request) -> bytes:
        """Returns the whole body, which is counted as held until ``release_body`` is called for the request.

        Raises ``TooLarge`` or ``Timeout`` if it exceeds the limits of size or time, ``LimitReached`` or ``Overloaded``
        if too many bytes of bodies are held.
        """
        config = self._config
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise InvalidInput(
                f"Content-Encoding '{encoding}' is not supported; send the body uncompressed.",
                code="unsupported_encoding",
            )
        too_large = TooLarge(f"The body is larger than {config.max_body_bytes} bytes.")
        # int() cannot fail: the HTTP parser accepts only digits in Content-Length.
        if int(request.headers.get("content-length", 0)) > config.max_body_bytes:
            raise too_large
        held = request.scope[HELD_BODY] = HeldBody(self._held, request.scope["axon.identity"].tenant)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(config.body_timeout_s):
                async for part in request.stream():
                    size += len(part)
                    if size > config.max_body_bytes:
                        raise too_large
                    held.add(len(part))
                    parts.append(part)
        except TimeoutError:
            raise Timeout() from None
        except ClientDisconnect:
            raise ClientLeft() from None
        return b"".join(parts)

    def arriving(self, tenant: str) -> HeldBody:
        """Returns the count of a body that arrives in pieces, which its reader adds and releases."""
        return HeldBody(self._held, tenant)

    def hold(self, scope: Scope, num_bytes: int) -> None:
        """Counts a body that is here already, a message of a WebSocket, as ``read`` does; raises as it does."""
        held = scope[HELD_BODY] = HeldBody(self._held, scope["axon.identity"].tenant)
        held.add(num_bytes)

    def allow_prompts(self, max_model_len: int) -> None:
        """Allows bodies with two prompts of this many token ids each; shorter prompts need no more than is allowed."""
        self._max_values = max(MAX_VALUES, 2 * max_model_len)

    async def parse(
        self,
        kind: type[W],
        body: bytes,
        not_yet: Mapping[str, tuple[Any, ...]],
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> W:
        """Returns what ``parse`` returns; raises ``Overloaded`` if the thread is busy for too long."""
        work = partial(parse, kind, body, not_yet, notes, max_values=self._max_values)
        return await self.in_turn(len(body), work)

    async def in_turn(self, num_bytes: int, work: Callable[[], T]) -> T:
        """Returns what ``work`` makes of a body of this size: at once, or in the thread after those before it if the
        body is large. Raises ``Overloaded`` if the thread is busy for too long."""
        if num_bytes < _LARGE_BYTES:
            return work()
        try:
            async with asyncio.timeout(_PARSE_TIMEOUT_S):
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except TimeoutError:
            raise Overloaded(retry_after_s=1.0) from None

    def close(self) -> None:
        """Stops the thread after the body that it is parsing; waiting bodies are dropped."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def parse(
    kind: type[W],
    body: bytes,
    not_yet: Mapping[str, tuple[Any, ...]],
    notes: Mapping[str, str] = MappingProxyType({}),
    *,
    max_values: int = MAX_VALUES,
) -> W:
    """Returns the request in a body; raises ``InvalidInput`` that names the wrong field.

    ``not_yet`` maps each field that is not supported to the values that are accepted because they change nothing;
    ``notes`` has what an error says beside the field's name.
    """
    raw = _fields(kind, body, not_yet, max_values)
    if b"\\u0000" in body:  # JSON allows NUL only in this escaped form
        _refuse_nul(raw)
    try:
        request = kind.model_validate(raw)
    except ValidationError as error:
        raise field_error(error) from None
    for name, neutral in not_yet.items():
        value = raw.get(name)
        if value is not None and value not in neutral:
            note = f": {notes[name]}" if name in notes else ""
            raise Unsupported(f"'{name}' is not supported by this server{note}.", param=name)
    return request


def num_parts(raw: bytes, enough: int = 0) -> int:
    """Counts the strings (field names included), lists and objects in a piece of JSON without decoding it.

    A result of at most ``enough`` may be an overestimate, which is cheaper to find; counting stops past ``MAX_PARTS``.
    """
    found = _num_parts(raw)
    if found <= enough:
        return found
    bare = _without_escapes(raw)
    num_quotes = bare.count(b'"')
    if num_quotes > 2 * MAX_PARTS:
        return num_quotes // 2  # more than any body may hold, whatever is between the quotes
    return num_quotes // 2 + _num_parts(_outside_strings(bare))


def num_values(raw: bytes, enough: int = 0) -> int:
    """Counts the values in a piece of JSON by its commas, without decoding it; empty lists and objects count as one.

    A result of at most ``enough`` may be an overestimate, which is cheaper to find. Call it for pieces that
    ``num_parts`` has found to be within bounds.
    """
    found = raw.count(b",") + 1
    return found if found <= enough else _outside_strings(_without_escapes(raw)).count(b",") + 1


def _without_escapes(raw: bytes) -> bytes:
    """Returns the JSON without escaped quotes: each quote that is left begins or ends a string."""
    return raw.replace(b"\\\\", b"").replace(b'\\"', b"")


def _outside_strings(bare: bytes) -> bytes:
    """Returns what is outside the strings of a piece of JSON that has no escaped quotes."""
    return b"".join(bare.split(b'"')[::2])


def _num_parts(raw: bytes) -> int:
    """Returns an upper bound of the count: brackets inside strings are counted as lists and objects."""
    return raw.count(b"[") + raw.count(b"{") + (raw.count(b'"') + 1) // 2


def _fields(kind: type[Wire], body: bytes, not_yet: Iterable[str], max_values: int) -> dict[str, Any]:
    """Returns the decoded values of the fields that ``kind`` and ``not_yet`` name, as far as the body has them."""
    names, decoder = _decoder(kind, tuple(not_yet))
    found: dict[str, Any] = {}
    budget, name = _Budget(kind, max_values), ""
    try:
        pieces = decoder.decode(body)
        for name in names:
            if (raw := getattr(pieces, name)) is not _ABSENT:
                budget.take(name, piece := bytes(raw))
                found[name] = msgspec.json.decode(piece)
    except RecursionError:
        raise InvalidInput(_MAX_DEPTH_ERROR, code="invalid_json") from None
    except msgspec.ValidationError as error:
        raise _shape_error(str(error), name) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The body is not valid JSON: {error}", code="invalid_json") from None
    return found


class _Budget:
    """How much the declared fields of one body may still hold."""

    def __init__(self, kind: type[Wire], max_values: int) -> None:
        self._kind, self._max_values = kind, max_values
        self._num_parts = self._num_values = 0

    def take(self, name: str, piece: bytes) -> None:
        """Counts what a field's piece of JSON holds; raises ``InvalidInput`` if that is too much."""
        kind = self._kind
        bound = kind.max_parts_of.get(name, kind.max_parts)
        most = min(kind.max_parts - self._num_parts, bound)
        self._num_parts += (num := num_parts(piece, enough=most))
        if num > most:
            raise InvalidInput(
                f"'{name}' has too many entries: it may hold {bound} strings, lists and objects.", param=name
            )
        most = self._max_values - self._num_values
        self._num_values += (num := num_values(piece, enough=most))
        if num > most:
            raise InvalidInput(f"'{name}' has too many entries: a body may hold {self._max_values} values.", param=name)


@cache
def _decoder(kind: type[Wire], not_yet: tuple[str, ...]) -> tuple[tuple[str, ...], msgspec.json.Decoder[Any]]:
    """Returns the names of the fields, and a decoder that finds them in a JSON object and leaves their values as raw
    bytes."""
    names = tuple(dict.fromkeys((*kind.model_fields, *not_yet)))
    fields = [(name, msgspec.Raw, _ABSENT) for name in names]
    forbids = kind.model_config.get("extra") == "forbid"
    return names, msgspec.json.Decoder(msgspec.defstruct("Fields", fields, forbid_unknown_fields=forbids))


def _shape_error(problem: str, field: str) -> InvalidInput:
    """Returns our error for msgspec's: an unknown field where they are forbidden, a number that no double holds in
    ``field``, or a body that is no object."""
    if unknown := _UNKNOWN.search(problem):
        name = unknown[1][:_MAX_NAME_CHARS]
        return InvalidInput(
            f"Invalid value for '{name}': Extra inputs are not permitted.", code="invalid_type", param=name
        )
    if field and "out of range" in problem:
        return InvalidInput(f"Invalid value for '{field}': a number is out of range.", param=field)
    return InvalidInput("The body must be a JSON object.", code="invalid_json")


_UNKNOWN = re.compile(r"unknown field `(.*)`", re.DOTALL)


def _refuse_nul(value: Any) -> None:
    """Raises ``InvalidInput`` if a string has a NUL character; PostgreSQL would refuse it when the turn is stored."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\x00" in item:
                raise InvalidInput("Text must not contain NUL characters.", code="invalid_value")
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def field_error(error: ValidationError) -> InvalidInput:
    """Returns our error for pydantic's: the first wrong field, its path and what is wrong with it."""
    problems = error.errors(include_url=False, include_input=False)
    # pydantic reports every branch of a union. The branch whose type matched has the more useful message.
    problem = min(problems, key=lambda each: (each["loc"][:1] != problems[0]["loc"][:1], "type" in each["type"]))
    parts = (str(part) for part in problem["loc"])
    path = ".".join(part[:_MAX_NAME_CHARS] for part in parts if not _UNION_TAG.search(part))
    code = "missing_required_parameter" if problem["type"] == "missing" else "invalid_type"
    if problem["type"] in _VALUE_PROBLEMS:
        code = "invalid_value"
    return InvalidInput(f"Invalid value for '{path}': {problem['msg']}.", code=code, param=path or None)


_UNION_TAG = re.compile(r"[\[A-Z]|^(str|int|float|bool|constrained-.*)$")
"""Matches the parts of pydantic's error path that name a branch of a union, which the client's JSON does not have."""
_VALUE_PROBLEMS = frozenset(
    {
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
        "literal_error",
        "too_long",
        "too_short",
        "string_too_short",
        "string_too_long",
        "finite_number",
    }
)
