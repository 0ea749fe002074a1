"""The lines of an input: the same however the file is cut, one in memory at a time, each checked by itself."""

import json
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import InvalidInput
from axon.gateway.batches.lines import Checker, Raw, parse, split

ENDPOINT = "/v1/completions"


async def pieces(data: bytes, size: int) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def lines(data: bytes, size: int = 7, most: int = 10_000) -> list[Raw]:
    return [raw async for raw in split(pieces(data, size), max_body_bytes=most)]


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.integers(1, 50))
async def test_lines_are_the_same_however_a_file_is_cut(written: list[bytes], size: int) -> None:
    expected = [
        Raw(number, line.removeprefix(b"\xef\xbb\xbf" if number == 1 else b"").strip(b" \t\r"))
        for number, line in enumerate(written, start=1)
    ]
    assert await lines(b"\n".join(written), size) == [raw for raw in expected if raw.data]


async def test_a_line_that_is_too_long_is_told_and_the_next_one_is_read() -> None:
    found = await lines(b"one\n" + b"x" * 100_000 + b"\nthree", 999, most=100)
    assert found == [Raw(1, b"one"), Raw(2, None), Raw(3, b"three")]


def line(**changes: object) -> bytes:
    return json.dumps({"custom_id": "a", "method": "POST", "url": ENDPOINT, "body": {"x": 1}, **changes}).encode()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (None, "line_too_long"),
        (b"{", "invalid_json_line"),
        (b"[1]", "invalid_request"),
        (b'"\xff"', "invalid_json_line"),
        (b"[" * 100_000, "invalid_request"),
        (line(custom_id=""), "invalid_value"),
        (line(custom_id=7), "invalid_request"),
        (line(custom_id="x" * 513), "invalid_value"),
        (line(custom_id="\x00"), "invalid_value"),
        (line(method="get"), "invalid_method"),
        (line(url="/v1/responses"), "invalid_url"),
        (b'{"custom_id": "a"}', "invalid_request"),
    ],
)
def test_a_wrong_line_is_refused_by_name(data: bytes | None, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(Raw(3, data), ENDPOINT)
    assert refused.value.code == code


def test_a_checker_finds_what_comes_twice_and_what_is_too_much() -> None:
    checker = Checker(ENDPOINT, lambda body: "echo", max_lines=3)
    for number, name in enumerate(["a", "b", "a", "c", "d"], start=1):
        checker.check(Raw(number, line(custom_id=name)))
    assert [(each.line, each.code) for each in checker.problems] == [
        (3, "duplicate_custom_id"),
        (4, "too_many_lines"),
        (5, "too_many_lines"),
    ]
    assert checker.is_enough
    assert (checker.new_models(), checker.new_models()) == ([("echo", 1)], [])
