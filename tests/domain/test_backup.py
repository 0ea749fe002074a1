"""A manifest is read as it was written, and a pepper is known by its fingerprint alone."""

import pytest

from axon.domain.backup import (
    ColumnFacts,
    FilesFacts,
    Manifest,
    Part,
    TableFacts,
    decode,
    encode,
    is_pepper,
    pepper_facts,
)
from axon.errors import InvalidInput

MANIFEST = Manifest(
    axon="1.2.3",
    database="sqlite",
    revision="0012",
    created_at=1_700_000_000.5,
    num_unfinished=2,
    tables=(TableFacts(name="keys", columns=(ColumnFacts(name="id", kind="text"),), num_rows=3, digest="00"),),
    files=FilesFacts(included=True, num_files=1, num_bytes=7, missing=("file-2",)),
    pepper=pepper_facts(b"secret", included=True),
    parts=(Part(name="tables/keys/000000.rows.gz", num_bytes=10, sha256="aa"),),
)


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert decode(encode(MANIFEST)) == MANIFEST
    assert (MANIFEST.num_rows, MANIFEST.num_bytes) == (3, 10)


@pytest.mark.parametrize("text", [b"", b"{}", b'{"format": 1}', b'{"format": "x"}', encode(MANIFEST)[:-20]])
def test_a_damaged_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput, match="manifest cannot be read"):
        decode(text)


def test_a_pepper_is_known_by_a_salted_fingerprint() -> None:
    first, second = (pepper_facts(b"secret", included=False) for _ in range(2))
    assert first.fingerprint != second.fingerprint
    assert b"secret" not in encode(MANIFEST)
    assert is_pepper(first, b"secret")
    assert not is_pepper(first, b"Secret")
