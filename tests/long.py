"""How much of the long tests a run does: all of it in ``make test-long``, a tenth in ``make test``.

A corpus is a test with many cases and the mark ``long``, or all tests whose mark names the same corpus, as in
``long("ranks")``: of those, every tenth is run, and which ones the run's seed decides, so that ten orders see all of
them. A soak asks for its ``share``. A journey asserts the same at every place that servers keep things in: a short run
has it at one of them, which its seed and file decide, unless its mark is ``everywhere``.
"""

import os
import zlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
PART = 10


def whole() -> bool:
    """Whether this is ``make test-long``."""
    return os.environ.get("TEST_LONG") == "1"


def share(amount: float) -> float:
    """What a run does of an amount that is for the long one: seconds, requests, examples."""
    return amount if whole() else amount / PART


def left_out(cases: Sequence[T], seed: int | None) -> list[T]:
    """The cases of one corpus that a short run leaves out; one at least stays."""
    first = (seed or 0) % min(PART, max(1, len(cases)))
    return [case for index, case in enumerate(cases) if index % PART != first]


def drawn_for(file: str, seed: int | None) -> int:
    """A seed of the file's own: a run has all its tests at one place, where they share a server, but not all files."""
    return (seed or 0) ^ zlib.crc32(file.encode())
