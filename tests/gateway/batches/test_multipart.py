"""The parser of forms: the same however the bytes are cut, bounded, and strict about what it cannot read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import InvalidInput
from axon.gateway.batches.multipart import MultipartParser, PartBegan, PartData, boundary_of

BOUNDARY = b"xyz"


def form(*parts: tuple[str, bytes]) -> bytes:
    body = b"".join(
        b"--xyz\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + data + b"\r\n"
        for head, data in parts
    )
    return body + b"--xyz--\r\n"


def parsed(body: bytes, cuts: list[int]) -> list[tuple[PartBegan, bytes]]:
    parser = MultipartParser(BOUNDARY)
    found: list[tuple[PartBegan, bytes]] = []
    ends = [*sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    start = 0
    for end in ends:
        for event in parser.feed(body[start:end]):
            if isinstance(event, PartBegan):
                found.append((event, b""))
            else:
                assert isinstance(event, PartData)
                found[-1] = found[-1][0], found[-1][1] + event.data
        start = end
    parser.close()
    return found


_PIECES = st.lists(st.sampled_from([b"\r\n", b"--", b"--xyz", b"\r\n--xy", b"\r", b"z", b"data\n", b"\x00\xff"]))


@given(_PIECES.map(b"".join).filter(lambda data: b"\r\n--xyz" not in b"\r\n" + data), st.lists(st.integers(0, 500)))
def test_a_form_is_the_same_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    body = form(('name="purpose"', b"batch"), ('name="file"; filename="a \\"b\\".jsonl"', data))
    assert parsed(body, cuts) == [(PartBegan("purpose", None), b"batch"), (PartBegan("file", 'a "b".jsonl'), data)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"--xyz\r\n\r\ndata\r\n--xyz--",
        b"--xyz\r\nContent-Disposition: form-data\r\n\r\ndata\r\n--xyz--",
        b'--xyz\r\nContent-Disposition: form-data; name="file"\r\n\r\nno end',
        b'--xyzz\r\nContent-Disposition: form-data; name="file"\r\n\r\n\r\n--xyz--',
        b"--xyz\r\nA: " + b"a" * 10_000,
        form(*[('name="a"', b"")] * 40),
    ],
)
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        parsed(body, [3, 7])


def test_an_endless_part_is_passed_on_and_not_kept() -> None:
    parser = MultipartParser(BOUNDARY)
    list(parser.feed(b'--xyz\r\nContent-Disposition: form-data; name="file"\r\n\r\n'))
    for _ in range(100):
        [event] = parser.feed(b"a" * 100_000)
        assert isinstance(event, PartData)
    assert len(parser._buffer) < 100


@pytest.mark.parametrize(
    ("text", "boundary"),
    [
        ("multipart/form-data; boundary=abc", b"abc"),
        ('Multipart/Form-Data; charset=utf-8; Boundary="a b"', b"a b"),
    ],
)
def test_a_boundary_is_read_from_the_content_type(text: str, boundary: bytes) -> None:
    assert boundary_of(text) == boundary


@pytest.mark.parametrize("text", ["", "application/json", "multipart/form-data", "multipart/mixed; boundary=abc"])
def test_another_content_type_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        boundary_of(text)
