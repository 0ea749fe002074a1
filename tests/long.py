"""How much of the long tests a run does: all of it in ``make test-long``, a tenth in ``make test``.

A corpus is a test with many cases and the mark ``long``, or all tests whose mark names the same corpus, as in
``long("ranks")``: of those, every tenth is run, and which ones the run's seed decides, so that ten orders see all of
them. A soak asks for its ``share``. A property is tried with a third of its ``examples``, which are others with each
run; one that must notice a planted breakage writes its number out, and is tried with all. Of a table whose rows are
tests, each does its cells ``in_turn``. A journey asserts the same at
every place that servers keep things in: a short run has it at one of them, which its seed and file decide, unless its
mark is ``everywhere``.
"""

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
PART = 10
EXAMPLES_PART = 3
TURNS = 4


def whole() -> bool:
    """Whether this is ``make test-long``."""
    return os.environ.get("TEST_LONG") == "1"


def share(amount: float) -> float:
    """What a run does of an amount that is for the long one: seconds, requests, examples."""
    return amount if whole() else amount / PART


def examples(amount: int) -> int:
    """How many of the examples that a property has in the long run a run tries."""
    return amount if whole() else -(-amount // EXAMPLES_PART)


def seed() -> int:
    """The run's seed, for a test that takes others of its cases each time."""
    return int(os.environ.get("TEST_SEED") or 0)


def some(cases: Sequence[T]) -> list[T]:
    """What a run does of the cases that one test goes through by itself: all, or every tenth by the run's seed."""
    seed = int(os.environ.get("TEST_SEED") or 0)
    out = set() if whole() else set(left_out(range(len(cases)), seed))
    return [case for index, case in enumerate(cases) if index not in out]


def in_turn(cases: Sequence[T], turn: int, turns: int = TURNS) -> list[T]:
    """What a run does of the cases of one row of a table: all, or one of ``turns``, others in the next row. So every
    row and every column is tried each time, and with ``turns`` seeds every cell."""
    seed = int(os.environ.get("TEST_SEED") or 0)
    return [case for index, case in enumerate(cases) if whole() or (index + turn + seed) % turns == 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What decides whether a short run has a test's case."""

    file: str
    corpus: str = ""
    """The name of the corpus that it is of, if it is long."""
    anywhere: str = ""
    """What the case is wherever it runs, if it is to run at one place only."""


def out_of(cases: Sequence[Case], seed: int | None) -> set[int]:
    """The numbers of the cases that a short run leaves out: nine tenths of a corpus, all places but one."""
    corpora: dict[str, list[int]] = {}
    places: dict[tuple[str, str], list[int]] = {}
    for number, case in enumerate(cases):
        if case.corpus:
            corpora.setdefault(case.corpus, []).append(number)
        elif case.anywhere:
            places.setdefault((case.file, case.anywhere), []).append(number)
    out = {number for corpus in corpora.values() for number in left_out(corpus, seed)}
    return out | {number for (file, _), at in places.items() for number in left_out(at, drawn_for(file, seed))}


def left_out(cases: Sequence[T], seed: int | None) -> list[T]:
    """The cases of one corpus that a short run leaves out; one at least stays."""
    first = (seed or 0) % min(PART, max(1, len(cases)))
    return [case for index, case in enumerate(cases) if index % PART != first]


def drawn_for(file: str, seed: int | None) -> int:
    """A seed of the file's own: a run has all its tests at one place, where they share a server, but not all files."""
    return (seed or 0) ^ zlib.crc32(file.encode())
