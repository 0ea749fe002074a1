"""Drives one batch from state to state while its lease holds: check, run, write. Safe to repeat from any point.

What it has done is in the store: the state, and a result for each line that is done. A line that was asked and has no
result is asked again under the same idempotency key, and finds its turn. Each writing of the files has ids of its own,
and the change that ends the batch makes one writing's files visible. Knows no HTTP.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace

import structlog

from axon.domain.batch import (
    Batch,
    BatchState,
    LineProblem,
    Step,
    all_answered,
    broken,
    ended,
    errors_id,
    expired,
    output_id,
    refused,
    step_of,
    validated,
)
from axon.domain.file import File, Purpose
from axon.domain.tenants.tenant import Terms
from axon.errors import AxonError, InvalidInput, NotFound
from axon.gateway.batches.calls import in_flight
from axon.gateway.batches.driver_parts import DriverParts
from axon.gateway.batches.endpoints import ENDPOINTS
from axon.gateway.batches.lines import Checker, Line, Raw, parse, problem_of, split
from axon.gateway.batches.results import PAGE_BYTES, unanswered
from axon.gateway.batches.running import Running, Standstill
from axon.runtime.failpoints import failpoint

_BLOCK, _BLOCK_BYTES = 64, 1 << 20
"""Lines that are checked in one go, in a thread, and the bytes after which no more are added to them."""
_MAX_PROBLEMS = 100
_PAGE = 100
"""Results that are read at once."""
_AGAIN_S = 1.0
"""Pause after a failure of a service."""

_logger = structlog.get_logger("axon.batches")


class LineUnusable(Exception):
    """A line that was good when the batch was checked is not any more, as after a change of the limits."""

    def __init__(self, problem: LineProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Driver:
    """One batch. Other parts tell it by ``note_change`` how the batch stands in the store."""

    def __init__(self, parts: DriverParts, batch: Batch) -> None:
        self._parts, self._batch = parts, batch
        self._is_stopped = asyncio.Event()
        """Set when no more lines are to be run: it was cancelled."""
        self._files: list[File] = []
        """Files whose bytes are written and whose records are not."""
        self._is_unsure = False
        """Whether the batch may stand otherwise in the store than here."""

    def note_change(self, batch: Batch) -> None:
        """Takes notice of a change that another process has made."""
        if batch.revision > self._batch.revision:
            self._batch = batch
        if batch.state is BatchState.CANCELLING or batch.state.terminal:
            self._is_stopped.set()

    async def run(self) -> bool:
        """Returns True when the batch has ended, and False when it cannot go on for now. A failure of a service is
        waited out."""
        while (step := step_of(self._batch, self._parts.clock.now())) is not Step.REST:
            old = self._batch
            try:
                await self._advance(old, step)
            except Standstill:
                return False
            except AxonError as error:
                _logger.warning("batch.interrupted", batch=old.id, step=step.name, error=str(error))
                await asyncio.sleep(_AGAIN_S)
                with contextlib.suppress(AxonError):
                    await self._look_again()
        return True

    async def _advance(self, old: Batch, step: Step) -> None:
        """Does a step and stores what has become of the batch, if nobody else has changed it meanwhile."""
        if self._is_unsure:
            await self._look_again()
            return
        new = await self._next(step)
        failpoint(f"batch.{step.name.lower()}")
        self._is_unsure = True  # a change that raises may have been made
        is_changed = await self._parts.batches.change(old, new, files=self._files)
        self._is_unsure = False
        if not is_changed:
            await self._look_again()
            return
        self._batch, self._files = new, []
        self._is_stopped.clear()
        _logger.info("batch.moved", batch=new.id, tenant_id=new.tenant, state=str(new.state))

    async def _look_again(self) -> None:
        """Reads how the batch stands, and deletes the files that were written here in vain. A change of which no reply
        came may still be made while the batch has not ended: its files stay, and are deleted when they are old."""
        batch = await self._parts.batches.get(self._batch.id) or _gone(self._batch)
        if batch.state.terminal or not self._is_unsure:
            for file in self._files:
                if file.id not in (batch.output_file_id, batch.error_file_id):
                    await self._parts.bytes.delete(file.id)
        self._is_unsure, self._batch, self._files = False, batch, []

    async def _next(self, step: Step) -> Batch:
        """Does a step and returns the batch as it is after it."""
        now = self._parts.clock.now
        if step is Step.CHECK:
            return await self._check()
        if step is Step.EXPIRE:
            return expired(self._batch, now())
        if step is Step.WRITE:
            return await self._write()
        batch = self._batch
        try:
            return all_answered(batch, now()) if await self._run_lines(batch) else self._stopped(batch)
        except NotFound:
            return broken(batch, _MISSING, now())
        except LineUnusable as error:
            return broken(batch, error.problem, now())

    def _stopped(self, batch: Batch) -> Batch:
        now = self._parts.clock.now()
        return expired(batch, now) if now >= batch.expires_at else batch

    async def _check(self) -> Batch:
        parts, batch = self._parts, self._batch
        terms = await self._terms()
        checker = Checker(batch.endpoint, ENDPOINTS[batch.endpoint], max_lines=parts.config.max_lines)
        block: list[Raw] = []
        num_bytes = 0
        try:
            async with aclosing(self._lines()) as lines:
                async for raw in lines:
                    block.append(raw)
                    num_bytes += len(raw.data or b"")
                    if len(block) == _BLOCK or num_bytes >= _BLOCK_BYTES:
                        await self._check_block(checker, block, terms)
                        block, num_bytes = [], 0
                    if checker.is_enough or self._is_stopped.is_set():
                        break
            await self._check_block(checker, block, terms)
        except NotFound:
            return refused(batch, [_MISSING], parts.clock.now())
        if self._is_stopped.is_set():
            return batch
        if not checker.total:
            return refused(batch, [_problem("empty_file", "The input file has no lines.")], parts.clock.now())
        if checker.problems:
            return refused(batch, checker.problems, parts.clock.now())
        return validated(batch, checker.total, parts.clock.now())

    async def _check_block(self, checker: Checker, block: list[Raw], terms: Terms) -> None:
        """Checks lines in a thread, and here the models that they name first."""
        await asyncio.to_thread(_check_all, checker, block)
        for model, number in checker.new_models():
            try:
                self._parts.check_model(self._batch, terms, model)
            except AxonError as error:
                checker.problems.append(problem_of(number, error))

    async def _run_lines(self, batch: Batch) -> bool:
        """Answers the lines that have no result; False if it was stopped before the last one."""
        done = await self._parts.batches.done(batch.id)
        running = Running(self._parts, batch, self._is_stopped)
        try:
            async with aclosing(self._lines()) as lines:
                async for raw in lines:
                    if raw.number in done:
                        continue
                    terms = await self._terms()
                    await running.room(in_flight(self._parts.config.lines_in_flight, terms), len(raw.data or b""))
                    if self._is_over(batch):
                        break
                    running.start(_usable(raw, batch.endpoint), terms)
            await running.all_done()
        finally:
            await running.leave()
        return not running.is_cut and not self._is_over(batch)

    def _is_over(self, batch: Batch) -> bool:
        return self._is_stopped.is_set() or self._parts.clock.now() >= batch.expires_at

    async def _write(self) -> Batch:
        """Writes both files from one look at the results, so that each line is in exactly one of them."""
        parts, batch = self._parts, self._batch
        self._files, writing = [], secrets.token_hex(4)
        if not batch.total:  # it was cancelled before its input was found to be good
            return ended(batch, completed=0, failed=0, output="", errors="", now=parts.clock.now())
        done = await parts.batches.done(batch.id)
        num_good = sum(done.values())
        output = (
            await self._put(output_id(batch.id, writing), "output", self._results(done, ok=True)) if num_good else ""
        )
        has_errors = len(done) - num_good or len(done) < batch.total
        problems: list[LineProblem] = []
        pieces = self._errors(done, problems)
        errors = await self._put(errors_id(batch.id, writing), "errors", pieces) if has_errors else ""
        return ended(
            replace(batch, problems=(*batch.problems, *problems)[:_MAX_PROBLEMS]),
            completed=num_good,
            failed=len(done) - num_good,
            output=output,
            errors=errors,
            now=parts.clock.now(),
        )

    async def _put(self, file_id: str, kind: str, pieces: AsyncIterator[bytes]) -> str:
        parts, batch, now = self._parts, self._batch, self._parts.clock.now()
        num_bytes = await parts.bytes.put(file_id, pieces)
        failpoint(f"batch.{kind}_written")
        if not num_bytes:
            await parts.bytes.delete(file_id)
            return ""
        file = File(
            id=file_id,
            tenant=batch.tenant,
            filename=f"{batch.id}_{kind}.jsonl",
            purpose=Purpose.BATCH_OUTPUT,
            num_bytes=num_bytes,
            created_at=now,
            expires_at=now + parts.config.retention_s,
        )
        self._files.append(file)
        return file_id

    async def _results(self, done: Mapping[int, bool], *, ok: bool) -> AsyncIterator[bytes]:
        """The lines of the results that ``done`` has, of one kind."""
        after = 0
        batches = self._parts.batches
        while page := await batches.results(self._batch.id, after=after, limit=_PAGE, max_bytes=PAGE_BYTES):
            after = page[-1].line
            if chosen := [each.body for each in page if each.ok is ok and each.line in done]:
                yield b"".join(body + b"\n" for body in chosen)

    async def _errors(self, done: Mapping[int, bool], problems: list[LineProblem]) -> AsyncIterator[bytes]:
        """The lines of the error file. A line that cannot be read any more is added to ``problems`` instead."""
        async for piece in self._results(done, ok=False):
            yield piece
        if len(done) == self._batch.total:
            return
        try:
            async with aclosing(self._lines()) as lines:
                async for raw in lines:
                    if raw.number in done:
                        continue
                    try:
                        line = _usable(raw, self._batch.endpoint)
                    except LineUnusable as error:
                        problems.append(error.problem)
                        continue
                    yield unanswered(self._batch, line) + b"\n"
        except NotFound:
            problems.append(_MISSING)

    def _lines(self) -> AsyncGenerator[Raw, None]:
        pieces = self._parts.bytes.read(self._batch.input_file_id)
        return split(pieces, max_body_bytes=self._parts.max_body_bytes)

    async def _terms(self) -> Terms:
        """The tenant's terms; raises ``Standstill`` while it is suspended, unless the batch is to stop."""
        terms = await self._parts.terms(self._batch.tenant)
        if terms is None and not self._is_over(self._batch):
            raise Standstill
        return terms or Terms()


def _check_all(checker: Checker, block: list[Raw]) -> None:
    for raw in block:
        if not checker.is_enough:
            checker.check(raw)


def _usable(raw: Raw, endpoint: str) -> Line:
    """The request in a line that was found to be good; raises ``LineUnusable`` if it is not any more."""
    try:
        return parse(raw, endpoint)
    except InvalidInput as error:
        raise LineUnusable(problem_of(raw.number, error)) from error


def _problem(code: str, message: str) -> LineProblem:
    return LineProblem(line=None, code=code, message=message)


_MISSING = _problem("input_file_missing", "The input file is gone.")


def _gone(batch: Batch) -> Batch:
    """A batch whose record was deleted has nothing left to do."""
    return replace(batch, state=BatchState.CANCELLED)
