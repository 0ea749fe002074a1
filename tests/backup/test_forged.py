"""An archive that somebody forged, digests and all, is refused in a sentence of ours, and nothing has changed."""

import contextlib
import copy
import gzip
import hashlib
import json
import os
import random
import struct
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axon.adapters.backup import rows
from axon.adapters.backup.reading import Archive
from axon.bootstrap.backups import create_backup, restore_backup, verify_backup
from axon.domain.backup import RestoreOptions
from axon.errors import AxonError, DependencyDown, InvalidInput, Misconfigured
from tests.backup.places import Place, sqlite_place
from tests.console.program import Axon
from tests.long import share

OURS = (InvalidInput, Misconfigured, DependencyDown)


@dataclass
class Forgery:
    """A whole backup, to be changed and written with digests that are right again."""

    parts: list[tuple[str, bytes]]
    manifest: dict[str, Any]
    text: bytes = b""
    """Of the manifest, in place of ``manifest``."""
    before: bytes = b""
    """What comes before the first member."""

    def write(self, path: Path) -> Path:
        digests = [(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in self.parts]
        self.manifest["parts"] = [dict(zip(("name", "num_bytes", "sha256"), each, strict=True)) for each in digests]
        text = self.text or json.dumps(self.manifest).encode()
        end = [("manifest.json", text), ("manifest.sha256", hashlib.sha256(text).hexdigest().encode())]
        path.write_bytes(self.before + b"".join(member(*each) for each in [*self.parts, *end]) + bytes(1024))
        return path

    def table(self, *encoded: bytes) -> None:
        """Gives the first table these rows."""
        facts = self.manifest["tables"][0]
        data = b"".join(struct.pack(">I", len(row)) + row for row in encoded)
        own = f"tables/{facts['name']}/"
        others = [each for each in self.parts if not each[0].startswith(own)]
        self.parts = [(f"{own}000000.rows.gz", gzip.compress(data)), *others]
        facts["num_rows"] = len(encoded)

    @property
    def num_columns(self) -> int:
        return len(self.manifest["tables"][0]["columns"])


def member(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = len(data), kind
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


def signed(header: bytearray) -> bytes:
    """The header with the right checksum."""
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def sized(kind: bytes, size: int) -> bytes:
    """A header that states any size."""
    header = bytearray(member("files/a/000000", b"", kind))
    header[124:136] = b"\xff" + (size & (2**88 - 1)).to_bytes(11, "big") if size < 0 else b"%011o\0" % size
    return signed(header)


def sparse(size: int) -> bytes:
    header = bytearray(member("files/a/000000", b"", tarfile.GNUTYPE_SPARSE))
    header[483:495] = b"%011o\0" % size
    return signed(header)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with sqlite_place(tmp_path_factory.mktemp("place")) as place:
        place.fill()
        (place.data_dir / "pepper").write_text("of the first\n")
        yield place


@pytest.fixture(scope="module")
def original(place: Place) -> Forgery:
    path = place.data_dir / "one.backup"
    create_backup(place.settings, path)
    with tarfile.open(path) as tar:
        found = [(each.name, tar.extractfile(each).read()) for each in tar]  # type: ignore[union-attr]
    return Forgery(parts=found[:-2], manifest=json.loads(found[-2][1]))


@pytest.fixture
def forgery(original: Forgery) -> Forgery:
    return copy.deepcopy(original)


def refused(path: Path, folder: Path) -> AxonError:
    """Both commands refuse the archive; returns what ``verify`` says. Nothing is where the restore was to write."""
    with sqlite_place(folder / "target") as target:
        with pytest.raises(OURS):
            restore_backup(target.settings, path, RestoreOptions())
        assert not {"axon.db", "pepper", "files"} & {each.name for each in target.data_dir.glob("*")}
    with pytest.raises(OURS) as raised:
        verify_backup(path)
    assert len(raised.value.message) < 400
    return raised.value


def _set(**fields: Any) -> Callable[[Forgery], None]:
    return lambda forgery: forgery.manifest.update(fields)


def _set_pepper(**fields: Any) -> Callable[[Forgery], None]:
    return lambda forgery: forgery.manifest["pepper"].update(fields)


def _rows(row: Callable[[int], bytes]) -> Callable[[Forgery], None]:
    return lambda forgery: forgery.table(row(forgery.num_columns))


def _before(data: bytes) -> Callable[[Forgery], None]:
    return lambda forgery: setattr(forgery, "before", data)


def _more(name: str) -> Callable[[Forgery], None]:
    return lambda forgery: forgery.parts.append((name, b"bytes"))


def _without_pepper(forgery: Forgery) -> None:
    forgery.parts = [each for each in forgery.parts if not each[0].startswith("secrets/")]


def _deep(forgery: Forgery) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    forgery.text = json.dumps({**forgery.manifest, "parts": []}).encode()[:-1] + b',"more":' + deep + b"}"


def _table(name: str, column: str) -> Callable[[Forgery], None]:
    def forge(forgery: Forgery) -> None:
        columns = [{"name": column, "kind": "text"}]
        forgery.manifest["tables"].append({"name": name, "columns": columns, "num_rows": 1, "digest": "0" * 64})
        row = msgspec.msgpack.encode(["0001"])
        data = gzip.compress(struct.pack(">I", len(row)) + row)
        forgery.parts.append((f"tables/{name}/000000.rows.gz", data))

    return forge


def _twice(forgery: Forgery) -> None:
    forgery.manifest["tables"].append(forgery.manifest["tables"][0])


def _column_twice(forgery: Forgery) -> None:
    forgery.manifest["tables"][0]["columns"] *= 2


def _column_of_later(forgery: Forgery) -> None:
    """The tables of one migration under the name of an earlier one, which had others."""
    forgery.manifest["revision"] = "0001"


FORGED: dict[str, Callable[[Forgery], None]] = {
    "a pepper that is not there": _without_pepper,
    "a pepper that is not told of": _set(pepper=None),
    "another secret": _more("secrets/other"),
    "a salt that is not hexadecimal": _set_pepper(salt="zz" * 16),
    "a fingerprint that is not ASCII": _set_pepper(fingerprint="é" * 32),
    "a time without a date": _set(created_at=1e300),
    "a time before all": _set(created_at=-1.0),
    "a migration of 5,000 digits": _set(revision="1" * 5000),
    "a migration in other digits": _set(revision="٠٠٠٣"),
    "no migration": _set(revision="0000"),
    "an earlier migration": _column_of_later,
    "a count below nothing": _set(num_unfinished=-1),
    "a count above all": _set(num_unfinished=10**400),
    "deep fields": _deep,
    "a deep manifest": lambda forgery: setattr(forgery, "text", b"[" * 200_000),
    "too large a number": _rows(lambda num: msgspec.msgpack.encode([2**64 - 1] * num)),
    "deep rows": _rows(lambda num: b"\x91" * 100_000 + b"\x00"),
    "rows of maps": _rows(lambda num: msgspec.msgpack.encode([{"a": 1}] * num)),
    "rows of extensions": _rows(lambda num: msgspec.msgpack.encode([msgspec.msgpack.Ext(5, b"x")] * num)),
    "a short row": _rows(lambda num: msgspec.msgpack.encode([1])),
    "an empty row": _rows(lambda num: b""),
    "the table of migrations": _table("alembic_version", "version_num"),
    "the table of tables": _table("sqlite_master", "name"),
    "a table twice": _twice,
    "a column twice": _column_twice,
    "a file that leads out": _more("files/../../../etc/x/000000"),
    "a file without a number": _more("files/a/b/../../0"),
    "a path from the root": _more("/etc/zz"),
    "a file without an id": _more("files//000000"),
    "long names without an end": _before(member("././@LongLink", b"abcd\0", tarfile.GNUTYPE_LONGNAME) * 3000),
    "a long name that is too long": _before(member("././@LongLink", b"a" * 5000, tarfile.GNUTYPE_LONGNAME)),
    "a sparse file": _before(sparse((1 << 31) - 1)),
    "a size beyond the file": _before(sized(tarfile.REGTYPE, 1 << 28)),
    "a size beyond any part": _before(sized(tarfile.REGTYPE, 1 << 32)),
    "a sparse map": _before(member("x", b"30 GNU.sparse.map=a,b,c,d,ee,f\n", tarfile.XHDTYPE)),
    "a size in a header of its own": _before(member("x", b"14 size=-1024\n", tarfile.XHDTYPE)),
    **{f"a negative size of {kind}": _before(sized(kind.encode(), -512)) for kind in "0Lxg7Z"},
    **{f"a member of kind {kind}": _before(member("files/a/000000", b"", kind.encode())) for kind in "123456"},
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_archive_is_refused_by_both_commands(what: str, forgery: Forgery, tmp_path: Path) -> None:
    FORGED[what](forgery)
    refused(forgery.write(tmp_path / "forged.backup"), tmp_path)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("the table of migrations", "none of Axon's tables"),
        ("the table of tables", "none of Axon's tables"),
        ("an earlier migration", "migration 0001 has no"),
        ("a sparse file", "no part of a backup"),
        ("a size beyond any part", "no part of a backup"),
        ("a member of kind 2", "no part of a backup"),
        ("a file that leads out", "none of Axon's parts"),
    ],
)
def test_it_is_refused_for_what_it_is(what: str, said: str, forgery: Forgery, tmp_path: Path) -> None:
    FORGED[what](forgery)
    assert said in refused(forgery.write(tmp_path / "forged.backup"), tmp_path).message


def test_what_is_not_forged_is_restored(forgery: Forgery, tmp_path: Path) -> None:
    """Else the other tests would prove nothing; also with a name that needs a header of its own."""
    name = f"files/{'a' * 120}/000000"
    forgery.parts.append((name, b"bytes"))
    path = forgery.write(tmp_path / "same.backup")
    assert name in [part.name for part in verify_backup(path).parts]
    with sqlite_place(tmp_path / "target") as target:
        restore_backup(target.settings, path, RestoreOptions())
        assert (target.data_dir / "axon.db").exists()


def test_only_our_errors_come_of_any_manifest(original: Forgery, tmp_path: Path) -> None:
    """Values at any place of the manifest are replaced by others, and the digests are right."""
    draw = random.Random(11)
    values: list[Any] = [
        None,
        -1,
        0,
        1e300,
        2**63,
        10**30,
        "",
        "\x1b[2J",
        "é",
        "x" * 300,
        [],
        {},
        [[]],
        True,
        "../..",
        "0001",
    ]
    for _ in range(int(share(60))):
        forged = copy.deepcopy(original)
        for _ in range(draw.randint(1, 3)):
            _replace_somewhere(forged.manifest, draw, draw.choice(values))
        _try(forged.write(tmp_path / "forged.backup"))


def _replace_somewhere(tree: Any, draw: random.Random, value: object) -> None:
    while True:
        keys = [key for key in (tree if isinstance(tree, dict) else range(len(tree))) if key != "parts"]
        key = draw.choice(keys)
        if not isinstance(tree[key], dict | list) or not tree[key] or draw.random() < 0.2:
            tree[key] = value
            return
        tree = tree[key]


def test_only_our_errors_come_of_any_header(forgery: Forgery, tmp_path: Path) -> None:
    """Bytes of the headers are replaced, and their checksums are right."""
    whole = forgery.write(tmp_path / "whole.backup").read_bytes()
    with tarfile.open(tmp_path / "whole.backup") as tar:
        starts = [each.offset for each in tar]
    draw = random.Random(12)
    for _ in range(int(share(150))):
        start = draw.choice(starts)
        header = bytearray(whole[start : start + 512])
        for _ in range(draw.randint(1, 4)):
            at = draw.choice([*range(100, 160), 156, 156, 156, *range(512)])
            header[at] = draw.choice(
                [0, 0x20, 0x2D, 0x30, 0x37, 0x4C, 0x53, 0x67, 0x78, 0x80, 0xFF, draw.randrange(256)]
            )
        (tmp_path / "forged.backup").write_bytes(whole[:start] + signed(header) + whole[start + 512 :])
        with contextlib.suppress(*OURS):
            Archive(tmp_path / "forged.backup").check()


def test_only_our_errors_come_of_any_rows(original: Forgery, tmp_path: Path) -> None:
    """Values of rows are replaced by others of any kind."""
    draw = random.Random(13)
    values: list[Any] = [
        None,
        -1,
        2**63 - 1,
        2**64 - 1,
        float("nan"),
        float("inf"),
        "",
        "\0",
        b"\xff",
        True,
        [],
        "1e999",
    ]
    named = [each for each in original.parts if each[0].startswith("tables/")]
    for _ in range(int(share(40))):
        forged = copy.deepcopy(original)
        name, part = draw.choice(named)
        facts = next(each for each in forged.manifest["tables"] if each["name"] == name.split("/")[1])
        found = [list(row) for row in rows.unpacked(part, num_columns=len(facts["columns"]))]
        for _ in range(draw.randint(1, 4)):
            row = draw.choice(found)
            row[draw.randrange(len(row))] = draw.choice(values)
        total = rows.RowSum()
        (data,) = rows.packed(found, total)
        facts["digest"] = total.digest
        forged.parts = [(each, data if each == name else old) for each, old in forged.parts]
        path = forged.write(tmp_path / "forged.backup")
        _try(path)
        with sqlite_place(tmp_path / "target") as target, contextlib.suppress(*OURS):
            restore_backup(target.settings, path, RestoreOptions(force=True))


def _try(path: Path) -> None:
    with contextlib.suppress(*OURS):
        verify_backup(path)


def test_a_small_part_does_not_become_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    row = msgspec.msgpack.encode([None])
    many = gzip.compress((struct.pack(">I", len(row)) + row) * (1 << 20))
    one = gzip.compress(struct.pack(">I", 8 << 20) + bytes(8 << 20))
    monkeypatch.setattr(rows, "MOST_PART_BYTES", 1 << 18)
    for part in (many, one):
        tracemalloc.start()
        try:
            with pytest.raises(InvalidInput, match="longer than any"):
                for _ in rows.unpacked(part, num_columns=1):
                    pass
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()


def test_a_row_that_no_restore_would_take_is_not_backed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROW_BYTES", 100)
    with pytest.raises(Misconfigured, match="at most 100"):
        list(rows.packed([("x" * 200,)], rows.RowSum()))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_a_regular_file_is_read(kind: str, tmp_path: Path) -> None:
    """A pipe without a writer would be waited for."""
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(Misconfigured, match="no regular file"):
        verify_backup(path)


def test_an_archive_does_not_steer_the_terminal(forgery: Forgery, axon: Axon, tmp_path: Path) -> None:
    steering = "\x1b[2J\x1b]0;owned\x07\u202e"
    forgery.manifest.update(not_included=[steering], database=steering)
    forgery.manifest["files"].update(included=False, note=steering)
    path = forgery.write(tmp_path / "steering.backup")
    shown = axon("backup", "verify", str(path))
    assert shown.returncode == 0, shown.stderr
    assert "\\x1b[2J" in shown.stdout
    as_json = axon("backup", "verify", str(path), "--json")
    forgery.parts.append((f"files/{steering}/000000", b""))
    refusal = axon("backup", "verify", str(forgery.write(tmp_path / "named.backup")))
    assert refusal.returncode != 0
    for text in (shown.stdout, as_json.stdout, refusal.stdout, refusal.stderr):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
