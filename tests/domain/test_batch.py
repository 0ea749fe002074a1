"""A batch's state machine, in every order of events that can happen to it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.batch import (
    Batch,
    BatchState,
    LineProblem,
    Step,
    all_answered,
    cancelled,
    ended,
    errors_id,
    expired,
    output_id,
    refused,
    step_of,
    validated,
)

WINDOW_S = 100.0
ALLOWED = {
    BatchState.VALIDATING: {BatchState.IN_PROGRESS, BatchState.FAILED, BatchState.CANCELLING},
    BatchState.IN_PROGRESS: {BatchState.FINALIZING, BatchState.CANCELLING},
    BatchState.FINALIZING: {BatchState.COMPLETED, BatchState.EXPIRED, BatchState.FAILED},
    BatchState.CANCELLING: {BatchState.CANCELLED},
}


def make_batch() -> Batch:
    return Batch(
        id="batch_1", tenant="acme", endpoint="/v1/completions", input_file_id="f", created_at=0, expires_at=WINDOW_S
    )


def acted(batch: Batch, now: float, *, is_good: bool, is_done: bool) -> Batch:
    """The batch after its runner has done what is next."""
    match step_of(batch, now):
        case Step.CHECK:
            problem = LineProblem(line=1, code="invalid_json_line", message="no")
            return validated(batch, 3, now) if is_good else refused(batch, [problem], now)
        case Step.RUN:
            return all_answered(batch, now) if is_done else batch
        case Step.EXPIRE:
            return expired(batch, now)
        case Step.WRITE:
            return ended(batch, completed=2, failed=1, output="o", errors="e", now=now)
    return batch


@given(
    st.lists(st.tuples(st.sampled_from(["act", "cancel"]), st.floats(0, 60), st.booleans(), st.booleans()), max_size=12)
)
def test_it_moves_only_along_its_arrows_and_a_revision_at_a_time(
    events: list[tuple[str, float, bool, bool]],
) -> None:
    batch, now = make_batch(), 0.0
    for kind, later, is_good, is_done in events:
        now += later
        new = cancelled(batch, now) if kind == "cancel" else acted(batch, now, is_good=is_good, is_done=is_done)
        if new is batch:
            continue
        assert new.state in ALLOWED[batch.state]
        assert new.revision == batch.revision + 1
        assert new.reached[str(new.state)] == now
        assert batch.reached.items() <= new.reached.items()
        batch = new
    if batch.state.terminal:
        assert step_of(batch, now) is Step.REST
        assert cancelled(batch, now) is batch


@given(st.lists(st.sampled_from(["act", "cancel"]), max_size=4), st.booleans())
def test_it_always_ends_if_somebody_goes_on_with_it(first: list[str], is_done: bool) -> None:
    batch, now = make_batch(), 0.0
    for kind in first:
        batch = cancelled(batch, now) if kind == "cancel" else acted(batch, now, is_good=True, is_done=is_done)
    now = 2 * WINDOW_S
    for _ in range(4):
        batch = acted(batch, now, is_good=True, is_done=False)
    assert batch.state.terminal


def test_a_batch_whose_window_is_over_is_expired_and_says_so() -> None:
    batch = validated(make_batch(), 3, 1.0)
    assert step_of(batch, WINDOW_S) is Step.EXPIRE
    late = expired(batch, WINDOW_S)
    assert (late.state, late.ending) == (BatchState.FINALIZING, BatchState.EXPIRED)
    end = ended(late, completed=1, failed=0, output="o", errors="e", now=101.0)
    assert (end.state, end.output_file_id, end.error_file_id) == (BatchState.EXPIRED, "o", "e")


def test_a_batch_that_is_being_ended_is_not_cancelled() -> None:
    for state in BatchState:
        batch = replace(make_batch(), state=state)
        changes = state in (BatchState.VALIDATING, BatchState.IN_PROGRESS)
        assert (cancelled(batch, 1.0) is not batch) is changes


def test_its_files_have_ids_of_their_own_for_each_time_that_they_are_written() -> None:
    ids = {
        make(batch, writing) for make in (output_id, errors_id) for batch in ("batch_1", "batch_2") for writing in "ab"
    }
    assert len(ids) == 8
