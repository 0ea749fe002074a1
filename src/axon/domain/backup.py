"""The manifest of a backup: what is in it, what is not, and the digests that prove it. Reads and writes no archive."""

import hashlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from axon.errors import InvalidInput

FORMAT = 1
"""Version of the archive's layout."""
NOT_INCLUDED = (
    "what the live service holds (streams, leases, accounts, session cache): it is rebuilt, or expires",
    "jobs and journal records that wait in the queue",
    "turns accepted after the snapshot was taken",
    "model files: the registry says where each came from",
    "settings, environment variables, TLS keys and the text of API keys",
)
"""What no backup has, in the words that are shown to its reader."""

_YEAR_10000 = 253_402_300_800.0
"""Unix time after which no date can be written."""
_REVISION = re.compile(r"[0-9]{4,9}")
_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """How the operator wants a restore."""

    force: bool = False
    """Whether a store that has something in it, and its pepper, may be replaced."""
    while_running: bool = False
    """Whether servers may be connected to the PostgreSQL database."""
    lose_revocations: bool = False
    """Whether a store may be replaced whose revocations and erasures cannot be read any more."""
    run_unfinished: bool = False
    """Whether turns that had not ended are run again, in place of being ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A column as it was in the database."""

    name: str
    kind: str
    """One of ``rows.KINDS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A table's columns and what its rows amount to."""

    name: str
    columns: tuple[ColumnFacts, ...]
    num_rows: int
    digest: str
    """Sum of the SHA-256 digests of all rows, which does not depend on their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A member of the archive."""

    name: str
    num_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PepperFacts:
    """The secret that keys are hashed with, as far as a manifest may tell."""

    included: bool
    salt: str
    fingerprint: str
    """Scrypt of the pepper, so that a restore can tell whether a machine has the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFacts:
    """The bytes of uploaded files and of batches' results."""

    included: bool
    num_files: int = 0
    num_bytes: int = 0
    missing: tuple[str, ...] = ()
    """Ids of files that the store knows and whose bytes were gone, as those that expired during the backup."""
    note: str = ""
    """Why they are not included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything that is known of a backup."""

    format: int = FORMAT
    axon: str
    """Version of Axon that made it."""
    database: str
    """``sqlite`` or ``postgresql``."""
    revision: str
    """Migration that the tables were at."""
    created_at: float
    """Unix time before the snapshot was taken: everything older is in it."""
    num_unfinished: int
    """Turns that had not ended."""
    tables: tuple[TableFacts, ...]
    files: FilesFacts
    pepper: PepperFacts | None
    """None where the machine had no pepper."""
    parts: tuple[Part, ...]
    not_included: tuple[str, ...] = field(default=NOT_INCLUDED)

    @property
    def num_rows(self) -> int:
        return sum(table.num_rows for table in self.tables)

    @property
    def num_bytes(self) -> int:
        return sum(part.num_bytes for part in self.parts)


def encode(manifest: Manifest) -> bytes:
    """The manifest as JSON, one field a line."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode(text: bytes) -> Manifest:
    """Reads a manifest; raises ``InvalidInput`` if it is damaged or of a later format."""
    try:
        number = msgspec.json.decode(text, type=_Numbered).format
        if number != FORMAT:
            raise InvalidInput(
                f"The backup has format {number}, and this release reads format {FORMAT}. Use the release that made it."
            )
        manifest = msgspec.json.decode(text, type=Manifest)
    except RecursionError:
        raise _unreadable("it is nested too deeply") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise _unreadable(f"{error}") from None
    for fault in _faults(manifest):
        raise _unreadable(fault)
    return manifest


def _unreadable(why: str) -> InvalidInput:
    return InvalidInput(f"The backup's manifest cannot be read: {why}. Use another backup.")


def _faults(manifest: Manifest) -> Iterator[str]:
    """What is wrong with values of the right types. Digests find damage; these are what a forger may write."""
    if not 0 <= manifest.created_at < _YEAR_10000:
        yield "created_at is no time of a backup"
    if not _REVISION.fullmatch(manifest.revision):
        yield "revision is no migration"
    pepper, files = manifest.pepper, manifest.files
    if pepper is not None and not (_HEX.fullmatch(pepper.salt) and _HEX.fullmatch(pepper.fingerprint)):
        yield "salt or fingerprint of the pepper are no hexadecimal digits"
    rows, parts = (each.num_rows for each in manifest.tables), (each.num_bytes for each in manifest.parts)
    for number in (manifest.num_unfinished, files.num_files, files.num_bytes, *rows, *parts):
        if not 0 <= number < 1 << 63:
            yield "a number in it is none of a backup"


class _Numbered(msgspec.Struct):
    format: int


def pepper_facts(pepper: bytes, *, included: bool) -> PepperFacts:
    salt = secrets.token_hex(16)
    return PepperFacts(included=included, salt=salt, fingerprint=_fingerprint(pepper, salt))


def is_pepper(facts: PepperFacts, pepper: bytes) -> bool:
    """Whether this is the pepper that the backup's keys were hashed with."""
    return secrets.compare_digest(_fingerprint(pepper, facts.salt), facts.fingerprint)


def _fingerprint(pepper: bytes, salt: str) -> str:
    return hashlib.scrypt(pepper, salt=bytes.fromhex(salt), n=1 << 14, r=8, p=1, dklen=16).hex()
