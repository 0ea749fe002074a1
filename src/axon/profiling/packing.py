"""The form in which profiles travel between processes: msgpack, compressed, bounded. No I/O."""

import zlib

import msgspec

from axon.errors import AxonError
from axon.profiling.profile import TYPES, Kind, Profile

MAX_PACKED_BYTES = 8 << 20
"""Longest packed profile; the bounds of each kind keep profiles far below it."""
_MAX_UNPACKED_BYTES = 128 << 20


def pack(profile: Profile) -> bytes:
    """The profile for another process; raises ``AxonError`` if it is too large."""
    packed = zlib.compress(msgspec.msgpack.encode(profile), 1)
    if len(packed) > MAX_PACKED_BYTES:
        raise AxonError("The profile is too large to be sent: ask for fewer seconds.", code="profile_too_large")
    return packed


def unpack(kind: Kind, packed: bytes) -> Profile:
    """The profile that ``pack`` gave; raises ``ValueError`` for anything else."""
    try:
        unzip = zlib.decompressobj()
        body = unzip.decompress(packed, _MAX_UNPACKED_BYTES)
        if not unzip.eof:
            raise ValueError("not a whole profile")
        return msgspec.msgpack.decode(body, type=TYPES[kind])
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"not a profile: {error}") from error
