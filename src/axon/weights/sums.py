"""SHA256SUMS: digests that whoever uploaded a model states beside it. Computes none."""

import asyncio
import re
from contextlib import aclosing
from dataclasses import replace

from axon.errors import FetchInterrupted
from axon.weights.names import SUMS
from axon.weights.source import Check, Listing, Source

_LINE = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?(.+)")
_MAX_BYTES = 1 << 20


def parse_sums(text: str) -> dict[str, str]:
    """Digests by name, from lines as sha256sum writes them; other lines are passed over."""
    return {match[2]: match[1] for match in map(_LINE.fullmatch, text.splitlines()) if match}


async def with_sums(source: Source, listing: Listing, timeout_s: float) -> Listing:
    """The listing with the digests of its SHA256SUMS, if it has one of a sensible size."""
    sums = next((file for file in listing.files if file.name == SUMS and file.size <= _MAX_BYTES), None)
    if sums is None:
        return listing
    content = bytearray()
    try:
        async with asyncio.timeout(timeout_s), aclosing(source.read(sums, 0)) as chunks:
            async for chunk in chunks:
                content += chunk
                if len(content) > _MAX_BYTES:  # longer than it was stated
                    break
    except TimeoutError:
        raise FetchInterrupted(f"{SUMS} of {source.location.text} did not come within {timeout_s:g} s.") from None
    stated = parse_sums(bytes(content[:_MAX_BYTES]).decode(errors="replace"))
    files = (
        replace(file, check=Check(kind="sha256", value=stated[file.name])) if file.name in stated else file
        for file in listing.files
    )
    return replace(listing, files=tuple(files))
