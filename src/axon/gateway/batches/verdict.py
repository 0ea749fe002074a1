"""What an answer means for a line of a batch: it is done, it is tried again, or it has failed. Pure functions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

_LEAST_WAIT_S, _LONGEST_WAIT_S = 0.05, 30.0
_NEVER = frozenset({"storage_quota_exceeded"})
"""Codes of refusals that waiting does not mend: the tenant has to do something."""
_BUSY = "conversation_locked"


class Verdict(Enum):
    """What becomes of a line."""

    DONE = auto()
    """It has its answer."""
    FAILED = auto()
    """It has its error."""
    WAIT = auto()
    """It was not accepted: the same request is sent again later, until the batch ends."""
    RETRY = auto()
    """It was accepted and the server could not answer it: it is asked anew, a bounded number of times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer to a line."""

    status: int
    body: bytes
    code: str = ""
    """The error's code, if it is an error."""
    retry_after_s: float | None = None


def verdict_of(answer: Answer, attempt: int, attempts: int) -> Verdict:
    """What an answer means, to attempt number ``attempt`` (from 1) of at most ``attempts``."""
    if answer.status < 300:
        return Verdict.DONE
    is_refused = answer.status in (429, 503) or (answer.status == 409 and answer.code == _BUSY)
    if is_refused and answer.code not in _NEVER:
        return Verdict.WAIT
    if answer.status >= 500 or answer.status in (408, 410, 499):
        return Verdict.RETRY if attempt < attempts else Verdict.FAILED
    return Verdict.FAILED


def wait_s(answer: Answer, num_waits: int) -> float:
    """Seconds before a line is sent again: what the answer says, else a time that doubles with every wait."""
    doubled = _LEAST_WAIT_S * 2.0 ** min(num_waits, 16)
    asked = answer.retry_after_s if answer.retry_after_s is not None else doubled
    return min(_LONGEST_WAIT_S, max(_LEAST_WAIT_S, asked if math.isfinite(asked) else doubled))


def retry_after_s(headers: Mapping[bytes, bytes]) -> float | None:
    """Seconds that an answer's headers ask to wait; None if they do not say."""
    try:
        return float(headers[b"retry-after-ms"]) / 1000
    except (KeyError, ValueError):
        return None
