"""The lines of a batch's output and error files, in OpenAI's shape. Pure functions."""

from collections.abc import Iterator, Sequence

import msgspec

from axon.domain.batch import Batch, BatchState, Result
from axon.gateway.batches.lines import Line
from axon.gateway.batches.verdict import Answer

MAX_ANSWER_BYTES = 16 << 20
PAGE_BYTES = 8 << 20
"""Bytes of results that are written to the store, or read from it, at once; a single result may have more."""
_REASONS = {
    BatchState.FAILED: ("batch_failed", "This request was not executed, because the batch failed."),
    BatchState.EXPIRED: ("batch_expired", "This request could not be executed before the completion window expired."),
    BatchState.CANCELLED: ("batch_cancelled", "This request was not executed, because the batch was cancelled."),
}


def answered(batch: Batch, line: Line, answer: Answer, request_id: str) -> Result:
    """The result of a line that has an answer, good or not. One that is too large to be kept is an error."""
    if len(answer.body) > MAX_ANSWER_BYTES:
        message = f"The answer has more than {MAX_ANSWER_BYTES} bytes, which is the most that a batch keeps of a line."
        return Result(line=line.number, ok=False, body=_without_answer(batch, line, "response_too_large", message))
    body = {
        "id": _id(batch, line.number),
        "custom_id": line.custom_id,
        "response": {"status_code": answer.status, "request_id": request_id, "body": msgspec.Raw(answer.body)},
        "error": None,
    }
    return Result(line=line.number, ok=answer.status < 300, body=msgspec.json.encode(body))


def pages(results: Sequence[Result], max_bytes: int) -> Iterator[list[Result]]:
    """The results in order, in lists of at most ``max_bytes`` and at least one result."""
    page: list[Result] = []
    num_bytes = 0
    for result in results:
        if page and num_bytes + len(result.body) > max_bytes:
            yield page
            page, num_bytes = [], 0
        page.append(result)
        num_bytes += len(result.body)
    if page:
        yield page


def unanswered(batch: Batch, line: Line) -> bytes:
    """The line of an error file for a request that was not run before the batch ended."""
    code, message = _REASONS.get(batch.ending, _REASONS[BatchState.EXPIRED])
    return _without_answer(batch, line, code, message)


def _without_answer(batch: Batch, line: Line, code: str, message: str) -> bytes:
    error = {"code": code, "message": message}
    body = {"id": _id(batch, line.number), "custom_id": line.custom_id, "response": None, "error": error}
    return msgspec.json.encode(body)


def _id(batch: Batch, number: int) -> str:
    return f"batch_req_{batch.id.partition('_')[2]}_{number}"
