"""A request's body: read within its limits, and parsed at a cost that its bytes bound. Knows no field's meaning.

Only the fields that a request knows are decoded; what else a body holds is skipped and makes no object. What they hold
is counted in the bytes before it is decoded, and the first wrong entry of a list ends its validation.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticKnownError
from starlette.requests import ClientDisconnect, Request

from axon.errors import InvalidInput, Overloaded, TooLarge, Unsupported
from axon.gateway.config import GatewayConfig
from axon.gateway.http.errors import ClientLeft, Timeout

MAX_PARTS = 1 << 17
"""Texts, lists and objects that the known fields of a body may hold, names of fields included."""
_LARGE = 32 << 10
"""Bytes of a body that is parsed beside the event loop."""
_WAIT_S = 10.0
_MAX_NAME = 64
_MAX_DEPTH_ERROR = "The body is nested too deeply."

T = TypeVar("T")
Many = Annotated[list[T], Field(fail_fast=True)]
"""A list whose first wrong entry ends its validation."""


class Wire(BaseModel):
    """A body, or an object in one."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, use_attribute_docstrings=True)
    max_parts: ClassVar[int] = MAX_PARTS


W = TypeVar("W", bound=Wire)


def at_most(num_entries: int) -> Any:
    """For an object whose names are the client's: how many it may have, which is looked at before they are."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > num_entries:
            facts = {"field_type": "Dictionary", "max_length": num_entries, "actual_length": len(value)}
            raise PydanticKnownError("too_long", facts)
        return value

    return Field(max_length=num_entries), BeforeValidator(check)


async def read_body(request: Request, config: GatewayConfig) -> bytes:
    """The whole body, within its limits of size and time."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise InvalidInput(
            f"A body in Content-Encoding '{encoding}' is not taken; send it plain.", code="unsupported_encoding"
        )
    parts: list[bytes] = []
    too_large = TooLarge(f"The body is larger than {config.max_body_bytes} bytes.")
    size = 0
    if int(request.headers.get("content-length", 0)) > config.max_body_bytes:  # the parser lets digits through alone
        raise too_large
    try:
        async with asyncio.timeout(config.body_timeout_s):
            async for part in request.stream():
                size += len(part)
                if size > config.max_body_bytes:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise Timeout() from None
    except ClientDisconnect:
        raise ClientLeft() from None
    return b"".join(parts)


class Bodies:
    """Parses bodies: the large ones beside the event loop and one at a time, so that many take the memory of one."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bodies")

    async def parse(self, kind: type[W], body: bytes, not_yet: Mapping[str, tuple[Any, ...]]) -> W:
        """The request in a body, as ``parse`` finds it."""
        if len(body) < _LARGE:
            return parse(kind, body, not_yet)
        try:
            async with asyncio.timeout(_WAIT_S):
                return await asyncio.get_running_loop().run_in_executor(self._thread, parse, kind, body, not_yet)
        except TimeoutError:
            raise Overloaded(retry_after_s=1.0) from None

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def parse(kind: type[W], body: bytes, not_yet: Mapping[str, tuple[Any, ...]]) -> W:
    """The request in a body; raises ``InvalidInput`` that names the field.

    ``not_yet`` has the fields that are refused, each with the values that mean "as if it were not there".
    """
    raw = _fields(kind, body, not_yet)
    if b"\\u0000" in body:  # a bare NUL is no JSON
        _refuse_nul(raw)
    try:
        request = kind.model_validate(raw)
    except ValidationError as error:
        raise _field_error(error) from None
    for name, neutral in not_yet.items():
        value = raw.get(name)
        if value is not None and value not in neutral:
            raise Unsupported(f"'{name}' is not supported by this server yet.", param=name)
    return request


def num_parts(raw: bytes, enough: int = 0) -> int:
    """Texts, lists and objects in a piece of JSON, names of fields included; up to ``enough`` perhaps too many."""
    found = _num_parts(raw)
    if found <= enough:
        return found
    bare = raw.replace(b"\\\\", b"").replace(b'\\"', b"")  # a quote that is left begins or ends a text
    num_quotes = bare.count(b'"')
    if num_quotes > 2 * MAX_PARTS:
        return num_quotes // 2  # too many, whatever stands between them
    return num_quotes // 2 + _num_parts(b"".join(bare.split(b'"')[::2]))


def _num_parts(raw: bytes) -> int:
    """The same, with every bracket inside a text taken for one."""
    return raw.count(b"[") + raw.count(b"{") + (raw.count(b'"') + 1) // 2


def _fields(kind: type[Wire], body: bytes, not_yet: Iterable[str]) -> dict[str, Any]:
    """What the body says of the fields that its kind knows."""
    names = (*kind.model_fields, *(name for name in not_yet if name not in kind.model_fields))
    decoder = _decoder(names, forbids=kind.model_config.get("extra") == "forbid")
    found: dict[str, Any] = {}
    total = 0
    try:
        pieces = decoder.decode(body)
        for name in names:
            if piece := bytes(getattr(pieces, name)):
                total += num_parts(piece, enough=kind.max_parts - total)
                if total > kind.max_parts:
                    raise InvalidInput(
                        f"'{name}' has too many entries: the fields of a request may hold {kind.max_parts} texts, "
                        "lists and objects.",
                        param=name,
                    )
                found[name] = msgspec.json.decode(piece)
    except RecursionError:
        raise InvalidInput(_MAX_DEPTH_ERROR, code="invalid_json") from None
    except msgspec.ValidationError as error:
        raise _shape_error(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The body is not valid JSON: {error}", code="invalid_json") from None
    return found


@cache
def _decoder(names: tuple[str, ...], *, forbids: bool) -> msgspec.json.Decoder[Any]:
    """Finds the fields of these names in an object, and leaves them as they are written."""
    fields = [(name, msgspec.Raw, msgspec.Raw()) for name in names]
    return msgspec.json.Decoder(msgspec.defstruct("Fields", fields, forbid_unknown_fields=forbids))


def _shape_error(problem: str) -> InvalidInput:
    if unknown := _UNKNOWN.search(problem):
        name = unknown[1][:_MAX_NAME]
        return InvalidInput(
            f"Invalid value for '{name}': Extra inputs are not permitted.", code="invalid_type", param=name
        )
    return InvalidInput("The body must be a JSON object.", code="invalid_json")


_UNKNOWN = re.compile(r"unknown field `(.*)`", re.DOTALL)


def _refuse_nul(value: Any) -> None:
    """No store and no tokenizer has a use for NUL, and one of them refuses it late."""
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


def _field_error(error: ValidationError) -> InvalidInput:
    problems = error.errors(include_url=False, include_input=False)
    # Of a union's branches, the one whose kind was right says more than those whose kind was wrong.
    problem = min(problems, key=lambda each: (each["loc"][:1] != problems[0]["loc"][:1], "type" in each["type"]))
    parts = (str(part) for part in problem["loc"])
    place = ".".join(part[:_MAX_NAME] for part in parts if not _UNION_TAG.search(part))
    code = "missing_required_parameter" if problem["type"] == "missing" else "invalid_type"
    if problem["type"] in _VALUE_PROBLEMS:
        code = "invalid_value"
    return InvalidInput(f"Invalid value for '{place}': {problem['msg']}.", code=code, param=place or None)


# pydantic puts the branch of a union into the place of an error
_UNION_TAG = re.compile(r"[\[A-Z]|^(str|int|float|bool|constrained-.*)$")
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
