"""Phases of steps are noted only while somebody records, and within bounds."""

import threading

from axon.engine.phases import MAX_STEPS, Timeline, begin_steps, enter, timeline, within


def test_a_step_has_its_phases_one_after_the_other() -> None:
    made = Timeline()
    made.enter("before any step")
    made.begin_step()
    made.enter("schedule")
    made.enter("forward")
    made.device_ran("batch", 0.0, 0.002)
    made.end_step(sequences=2, tokens=5)
    made.enter("after it")
    [step] = made.result().steps
    assert (step.sequences, step.tokens) == (2, 5)
    assert [each.name for each in step.phases] == ["schedule", "forward"]
    first, second = step.phases
    assert abs(first.start_us + first.us - second.start_us) <= 1
    assert abs(second.start_us + second.us - (step.start_us + step.us)) <= 2
    assert [(each.name, each.us) for each in step.device] == [("batch", 2000)]


def test_what_is_entered_within_a_phase_belongs_to_it() -> None:
    made = Timeline()
    made.begin_step()
    with made.hold("draft"):
        made.enter("forward")
        made.enter("sample")
    made.enter("forward")
    made.end_step(sequences=1, tokens=1)
    [step] = made.result().steps
    assert [each.name for each in step.phases] == ["draft", "forward"]
    with within("nobody records"):
        enter("nothing")


def test_a_recording_that_is_full_takes_no_more() -> None:
    made = Timeline(max_steps=2)
    for _ in range(3):
        made.begin_step()
        made.end_step(sequences=1, tokens=1)
    assert made.is_full
    assert len(made.result().steps) == 2
    assert made.result().is_cut


def test_a_recording_ends_early_when_it_is_stopped_or_full_and_is_off_afterwards() -> None:
    stop = threading.Event()
    stop.set()
    assert begin_steps(60.0, stop)().steps == []
    assert timeline() is None
    enter("nobody records")


def test_a_full_recording_ends_by_itself() -> None:
    finish = begin_steps(60.0, threading.Event())
    recording = timeline()
    assert recording is not None
    for _ in range(MAX_STEPS):
        recording.begin_step()
        recording.end_step(sequences=1, tokens=1)
    assert finish().is_cut
    assert timeline() is None
