"""The lines of a batch's input, one at a time however large the file is: split, parsed and checked. Knows no store."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from axon.domain.batch import LineProblem
from axon.errors import AxonError, InvalidInput

MAX_CUSTOM_ID_CHARS = 512
_ENVELOPE_BYTES = 8 << 10
"""Bytes that a line may have beside its body."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Raw:
    """A line that is not blank; ``data`` is None if it is too long to be kept."""

    number: int
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One request of a batch."""

    number: int
    custom_id: str
    body: bytes


class _Wire(msgspec.Struct):
    """A line as it is written. Fields of other names are ignored."""

    custom_id: str
    method: str
    url: str
    body: msgspec.Raw


_decoder = msgspec.json.Decoder(_Wire)


async def split(pieces: AsyncGenerator[bytes, None], *, max_body_bytes: int) -> AsyncGenerator[Raw, None]:
    """The lines of a file, numbered from 1; blank ones are counted and left out. Holds one line at a time,
    and closes ``pieces``."""
    most = max_body_bytes + _ENVELOPE_BYTES
    number, rest, is_too_long = 1, bytearray(), False
    async with aclosing(pieces) as opened:
        async for piece in opened:
            start = 0
            while (end := piece.find(b"\n", start)) >= 0:
                if not is_too_long and len(rest) + end - start <= most:
                    rest += piece[start:end]
                else:
                    is_too_long = True
                if found := _raw(number, rest, is_too_long=is_too_long):
                    yield found
                number, start, is_too_long = number + 1, end + 1, False
                rest.clear()
            if not is_too_long and len(rest) + len(piece) - start <= most:
                rest += piece[start:]
            else:
                is_too_long = True
                rest.clear()
    if found := _raw(number, rest, is_too_long=is_too_long):
        yield found


def _raw(number: int, data: bytearray, *, is_too_long: bool) -> Raw | None:
    if is_too_long:
        return Raw(number, None)
    found = bytes(data.removeprefix(_BOM) if number == 1 else data).strip(b" \t\r")
    return Raw(number, found) if found else None


def parse(raw: Raw, endpoint: str) -> Line:
    """The request in a line; raises ``InvalidInput`` for what is wrong with it beside its body."""
    if raw.data is None:
        raise InvalidInput("The line is too long.", code="line_too_long")
    try:
        raw.data.decode()
        found = _decoder.decode(raw.data)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(f"The line is no batch request: {error}.", code="invalid_request") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidInput("This line is not parseable as valid JSON.", code="invalid_json_line") from None
    if not 0 < len(found.custom_id) <= MAX_CUSTOM_ID_CHARS or "\x00" in found.custom_id:
        raise InvalidInput(
            f"'custom_id' must have 1 to {MAX_CUSTOM_ID_CHARS} characters, and none of them NUL.", param="custom_id"
        )
    if found.method != "POST":
        raise InvalidInput("'method' must be 'POST'.", param="method", code="invalid_method")
    if found.url != endpoint:
        raise InvalidInput(f"'url' must be the batch's endpoint, '{endpoint}'.", param="url", code="invalid_url")
    return Line(number=raw.number, custom_id=found.custom_id, body=bytes(found.body))


def problem_of(number: int, error: AxonError) -> LineProblem:
    """An error as the problem of a line."""
    return LineProblem(line=number, code=error.code, message=error.message[:1000], param=error.param)


class Checker:
    """Checks lines one after the other: each by itself, and that no ``custom_id`` comes twice."""

    def __init__(
        self, endpoint: str, check_body: Callable[[bytes], str], *, max_lines: int, max_problems: int = 100
    ) -> None:
        self._endpoint, self._check_body = endpoint, check_body
        self._max_lines, self._max_problems = max_lines, max_problems
        self._seen: dict[bytes, int] = {}
        """Number of the line of each ``custom_id``, by its digest of 16 bytes: long ids cost no more than short
        ones."""
        self._models: dict[str, int] = {}
        """Number of the first line of each model."""
        self._num_told = 0
        self.total = 0
        self.problems: list[LineProblem] = []

    @property
    def is_enough(self) -> bool:
        """Whether no further line needs to be looked at."""
        return len(self.problems) >= self._max_problems or self.total > self._max_lines

    def new_models(self) -> list[tuple[str, int]]:
        """The models that were named since the last call, each with the number of its first line."""
        new, self._num_told = list(self._models.items())[self._num_told :], len(self._models)
        return new

    def check(self, raw: Raw) -> None:
        """Notes what is wrong with a line, if anything is."""
        self.total += 1
        try:
            if self.total > self._max_lines:
                raise InvalidInput(f"A batch has at most {self._max_lines} lines.", code="too_many_lines")
            line = parse(raw, self._endpoint)
            key = blake2b(line.custom_id.encode(), digest_size=16).digest()
            if key in self._seen:
                raise InvalidInput(
                    f"The custom_id of line {self._seen[key]} comes again; each must be unique.",
                    param="custom_id",
                    code="duplicate_custom_id",
                )
            self._seen[key] = line.number
            self._models.setdefault(self._check_body(line.body), line.number)
        except AxonError as error:
            self.problems.append(problem_of(raw.number, error))
