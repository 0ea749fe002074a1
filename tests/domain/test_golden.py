"""What an earlier release left in a queue, a log or a journal is read as it was meant."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from axon.domain import record, wire
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.presence import Presence
from axon.domain.record import Marker
from axon.domain.session.residence import Residence
from tests.domain.golden_meant import MARKER, MEANT
from tests.golden import write

FOLDER = Path(write.__file__).parent


def payload(name: str) -> bytes:
    return (FOLDER / f"{name}.msgpack").read_bytes()


def read(name: str) -> Any:
    """As its reader would: turns and markers come out of the journal, the others are asked for by their kind."""
    match MEANT[name]:
        case Job():
            return wire.decode(Job, payload(name))
        case Chunk():
            return wire.decode(Chunk, payload(name))
        case Presence():
            return wire.decode(Presence, payload(name))
        case Residence():
            return wire.decode(Residence, payload(name))
    return record.decode(payload(name))


def holds(whole: Any, part: Any) -> bool:
    """Whether all of ``part`` is in ``whole``; a place that a later format added may be empty behind it."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and holds(whole[name], part[name]) for name in part)
    if isinstance(part, list):
        added = whole[len(part) :]
        return len(whole) >= len(part) and all(map(holds, whole, part)) and all(each is None for each in added)
    return bool(whole == part)


@pytest.mark.parametrize("name", MEANT)
def test_every_field_of_a_golden_payload_is_read_as_it_was_meant(name: str) -> None:
    assert read(name) == MEANT[name]


@pytest.mark.parametrize("name", [name for name in MEANT if not name.startswith("marker")])
def test_what_is_written_again_holds_every_field_that_was_read(name: str) -> None:
    again = msgspec.msgpack.decode(wire.encode(read(name)))
    assert holds(again, msgspec.msgpack.decode(payload(name)))


def test_a_marker_is_read_and_never_written_again() -> None:
    assert record.decode(payload("marker-later")) == Marker(v=2, barrier=MARKER.barrier)
    assert holds(msgspec.msgpack.decode(record.encode(MARKER)), msgspec.msgpack.decode(payload("marker-v1")))


def test_every_golden_file_is_read_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.msgpack")} == set(MEANT)


@pytest.mark.parametrize("kind", [*wire.T.__constraints__, Marker], ids=lambda kind: kind.__name__)
def test_every_format_has_a_golden_file_of_its_version_and_one_of_a_later_one(kind: type) -> None:
    versions = {value.v: value for value in MEANT.values() if isinstance(value, kind)}
    [today] = [field.default for field in msgspec.inspect.type_info(kind).fields if field.name == "v"]  # type: ignore[attr-defined]
    assert {today, today + 1} <= versions.keys()


def test_a_golden_file_says_something_in_every_field() -> None:
    """A field that is at its default everywhere could be lost without a test noticing."""
    for kind in wire.T.__constraints__:
        maps = [msgspec.msgpack.decode(payload(name)) for name, value in MEANT.items() if isinstance(value, kind)]
        for name in {name for each in maps for name in each}:
            assert any(each[name] for each in maps if name in each), (kind, name)


def test_a_golden_file_is_never_written_again(tmp_path: Path) -> None:
    write.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.msgpack" for name in MEANT}
    (tmp_path / "job-v1.msgpack").write_bytes(b"as an earlier release left it")
    write.write(tmp_path)
    assert (tmp_path / "job-v1.msgpack").read_bytes() == b"as an earlier release left it"


@pytest.mark.parametrize("name", write.PAYLOADS)
def test_the_script_still_says_what_lies_here(name: str) -> None:
    assert msgspec.msgpack.decode(payload(name)) == write.PAYLOADS[name]
