"""A batch of requests and its state machine. Pure: each function's result depends on its arguments alone.

    validating ──► in_progress ──► finalizing ──► completed | expired | failed
        │ └─► failed    │
        └───────────────┴──► cancelling ──► cancelled

Every line of the input ends in exactly one of the two files: with its answer in the output, or with its error, the
cancellation or the expiry in the error file. Knows no file's bytes, no store and no HTTP.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto


class BatchState(StrEnum):
    """OpenAI's names of a batch's states."""

    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether nothing changes any more."""
        return self in (BatchState.FAILED, BatchState.COMPLETED, BatchState.EXPIRED, BatchState.CANCELLED)


class Step(Enum):
    """What is to be done next for a batch."""

    CHECK = auto()
    """Validate every line of the input."""
    RUN = auto()
    """Answer the lines that have no result yet."""
    EXPIRE = auto()
    """Its window is over: stop, and end it with what is there."""
    WRITE = auto()
    """Write the output and the error file, and end it."""
    REST = auto()
    """Nothing: it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineProblem:
    """What is wrong with one line of the input, or with the input as a whole (``line`` is None)."""

    line: int | None
    """Number of the line, from 1."""
    code: str
    message: str
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of one line of the input, as a line of an output or error file."""

    line: int
    """Number of the line in the input, from 1."""
    ok: bool
    """Whether it belongs into the output file; otherwise into the error file."""
    body: bytes
    """The line's JSON, without a line break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch as it is stored."""

    id: str
    tenant: str
    endpoint: str
    """Path of the API that answers its lines."""
    input_file_id: str
    created_at: float
    expires_at: float
    window: str = "24h"
    metadata: Mapping[str, str] | None = None
    names_versions: bool = False
    """Whether its lines may ask for one version of a model: its key had the scope ``versions``."""
    state: BatchState = BatchState.VALIDATING
    ending: BatchState = BatchState.COMPLETED
    """The state that ``finalizing`` leads to."""
    revision: int = 0
    """Number of its changes, by which a change is compared and set."""
    total: int = 0
    completed: int = 0
    failed: int = 0
    """Counts of its lines; while it runs, the store counts the results."""
    problems: tuple[LineProblem, ...] = ()
    output_file_id: str = ""
    error_file_id: str = ""
    reached: Mapping[str, float] = field(default_factory=dict)
    """Unix time at which each state was reached, by the state's name."""


def step_of(batch: Batch, now: float) -> Step:
    """What is to be done next."""
    match batch.state:
        case BatchState.VALIDATING:
            return Step.CHECK
        case BatchState.IN_PROGRESS:
            return Step.RUN if now < batch.expires_at else Step.EXPIRE
        case BatchState.FINALIZING | BatchState.CANCELLING:
            return Step.WRITE
    return Step.REST


def validated(batch: Batch, total: int, now: float) -> Batch:
    """The batch with an input of ``total`` good lines: it runs from now on."""
    return _moved(replace(batch, total=total), BatchState.IN_PROGRESS, now)


def refused(batch: Batch, problems: Sequence[LineProblem], now: float) -> Batch:
    """The batch with an input that cannot be run: it has failed, and nothing of it was run."""
    return _moved(replace(batch, problems=tuple(problems)), BatchState.FAILED, now)


def all_answered(batch: Batch, now: float) -> Batch:
    """The batch with a result for every line."""
    return _moved(replace(batch, ending=BatchState.COMPLETED), BatchState.FINALIZING, now)


def expired(batch: Batch, now: float) -> Batch:
    """The batch at the end of its window."""
    return _moved(replace(batch, ending=BatchState.EXPIRED), BatchState.FINALIZING, now)


def broken(batch: Batch, problem: LineProblem, now: float) -> Batch:
    """The batch with an input that cannot be read any more: it fails, and keeps the results that it has."""
    problems = (*batch.problems, problem)
    return _moved(replace(batch, ending=BatchState.FAILED, problems=problems), BatchState.FINALIZING, now)


def cancelled(batch: Batch, now: float) -> Batch:
    """The batch after its tenant has asked for its cancellation; one that is being ended stays as it is."""
    if batch.state not in (BatchState.VALIDATING, BatchState.IN_PROGRESS):
        return batch
    return _moved(replace(batch, ending=BatchState.CANCELLED), BatchState.CANCELLING, now)


def ended(batch: Batch, *, completed: int, failed: int, output: str, errors: str, now: float) -> Batch:
    """The batch with its files, whose ids are empty where there is no such file."""
    counted = replace(batch, completed=completed, failed=failed, output_file_id=output, error_file_id=errors)
    return _moved(counted, batch.ending, now)


def output_id(batch_id: str, writing: str) -> str:
    """Id of a batch's output file. ``writing`` names the attempt to write it, so that no other attempt replaces it."""
    return f"file-{batch_id.partition('_')[2]}o{writing}"


def errors_id(batch_id: str, writing: str) -> str:
    """Id of a batch's error file."""
    return f"file-{batch_id.partition('_')[2]}e{writing}"


def _moved(batch: Batch, state: BatchState, now: float) -> Batch:
    reached = {**batch.reached, str(state): now}
    return replace(batch, state=state, reached=reached, revision=batch.revision + 1)
