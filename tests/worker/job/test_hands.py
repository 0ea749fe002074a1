"""The jobs in a worker's hands: every change is announced to the parts that act on it, in one order."""

from collections.abc import Callable

import pytest

from axon.domain.turn import TurnState
from axon.ports.queue import Delivery
from axon.text.tokenizer import ByteTokenizer
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.job.trials import Trials
from tests.contracts.builders import make_job


def make_running(name: str = "one", *, tenant: str = "acme", choices: int = 1) -> Running:
    job = make_job(name, tenant=tenant, choices=choices)
    delivery = Delivery(tag=1, lane=job.lane, body=b"", redelivered=False)
    return Running(job=job, delivery=delivery, epoch=1, tokenizer=ByteTokenizer())


class Heard:
    """Hands, and what they announce; ``ended`` says whether the job had its end by then."""

    def __init__(self) -> None:
        self.hands = Hands(Trials(strike_limit=3))
        self.events = list[str]()
        self.hands.on_out.append(lambda running: self.events.append(f"out {self._ended(running)}"))
        self.hands.on_news.append(lambda running: self.events.append(f"news {self._ended(running)}"))
        self.hands.on_enter.append(lambda running: self.events.append(f"enter {self._ended(running)}"))
        self.hands.on_fill.append(lambda: self.events.append("fill"))
        self.hands.on_room.append(lambda: self.events.append("room"))

    @staticmethod
    def _ended(running: Running) -> str:
        return "ended" if running.terminal else "going on"

    def take(self, running: Running) -> Running:
        self.hands.take(running)
        self.events.clear()
        return running

    def suspect(self, *job_ids: str) -> None:
        """Two engines have died with these jobs."""
        for _ in range(2):
            assert self.hands.trials.crashed(dict.fromkeys(job_ids, 0)) == []


def test_a_job_that_is_taken_may_have_news_and_may_enter_the_engine() -> None:
    heard = Heard()
    heard.hands.take(running := make_running())
    assert heard.events == ["news going on", "enter going on"]
    assert heard.hands.holds(running)


def test_another_attempt_at_a_job_takes_the_place_of_the_first() -> None:
    heard = Heard()
    lost = heard.take(make_running())
    heard.hands.replace(lost, attempt := make_running())
    assert heard.events == ["out going on", "news going on", "enter going on"]
    assert (heard.hands.holds(lost), heard.hands.holds(attempt)) == (False, True)
    heard.events.clear()
    heard.hands.forget(lost)
    assert heard.events == []


@pytest.mark.parametrize(
    "end",
    [
        lambda hands, running: hands.end(running, TurnState.EXPIRED),
        lambda hands, running: hands.cancel(running),
        lambda hands, running: hands.stop(running, "budget_spent", "used up"),
    ],
)
def test_a_job_leaves_the_engine_before_it_ends_and_tells_the_log_after(end: Callable[[Hands, Running], None]) -> None:
    heard = Heard()
    running = heard.take(make_running())
    end(heard.hands, running)
    assert heard.events == ["out going on", "news ended"]
    assert heard.hands.holds(running)  # until its end is written


def test_the_end_of_a_suspect_lets_the_others_back_into_the_engine() -> None:
    heard = Heard()
    running = heard.take(make_running())
    heard.suspect(running.job.id, "other")
    heard.hands.end(running, TurnState.EXPIRED)
    assert heard.events == ["out going on", "news ended", "fill"]
    assert heard.hands.trials.on_trial == ("other",)


def test_a_job_that_is_forgotten_frees_its_slot() -> None:
    heard = Heard()
    running = heard.take(make_running())
    heard.suspect(running.job.id)
    heard.hands.forget(running)
    assert heard.events == ["out going on", "fill", "room"]
    assert (len(heard.hands.running), heard.hands.trials.on_trial) == (0, ())


def test_nobody_else_is_concerned_by_the_end_of_a_job_that_was_no_suspect() -> None:
    heard = Heard()
    running = heard.take(make_running())
    heard.hands.forget(running)
    assert heard.events == ["out going on", "room"]


def test_a_paused_job_leaves_its_slot_to_others_until_it_is_resumed() -> None:
    heard = Heard()
    running = heard.take(make_running(choices=2))
    heard.hands.pause(running)
    assert heard.events == ["out going on", "room"]
    assert (heard.hands.num_sequences, heard.hands.num_idle) == (0, {"acme": 1})
    heard.hands.resume(running)
    assert heard.events[2:] == ["fill"]
    assert (heard.hands.num_sequences, heard.hands.num_idle) == (2, {})


def test_a_job_on_trial_is_not_paused() -> None:
    heard = Heard()
    running = heard.take(make_running())
    heard.suspect(running.job.id)
    heard.hands.pause(running)
    assert (running.is_paused, heard.events) == (False, [])


def test_a_job_that_waits_for_its_trial_is_not_paused() -> None:
    """It would be paused still when its trial comes, and everybody would wait for its tenant's bucket."""
    heard = Heard()
    first, second = heard.take(make_running("first")), heard.take(make_running("second"))
    heard.suspect(first.job.id, second.job.id)
    heard.hands.pause(second)
    heard.hands.end(first, TurnState.EXPIRED)
    assert heard.hands.trials.on_trial == (second.job.id,)
    assert second.absent == second.choices


def test_a_job_that_waits_for_its_adapters_files_leaves_its_slot_to_others_until_they_are_here() -> None:
    heard = Heard()
    running = heard.take(make_running(choices=2))
    heard.hands.await_files(running)
    heard.hands.await_files(running)
    assert heard.events == ["room"], "others are taken once"
    assert (heard.hands.num_sequences, heard.hands.num_idle) == (0, {"acme": 1})
    heard.hands.have_files(["unknown", running.job.id])
    assert heard.events[1:] == ["fill"]
    assert (heard.hands.num_sequences, heard.hands.num_idle) == (2, {})


def test_a_suspects_trial_waits_for_its_files_and_nobody_waits_for_both() -> None:
    heard = Heard()
    suspect, other = make_running("suspect"), make_running("other")
    suspect.crashes = 2
    heard.take(suspect)
    heard.take(other)
    trials = heard.hands.trials
    assert not trials.may_run(other.job.id)
    heard.hands.await_files(suspect)
    assert heard.events == ["fill", "room"]
    assert trials.may_run(other.job.id)
    assert trials.crashes(suspect.job.id) == 2, "they travel with it"
    heard.hands.have_files([suspect.job.id])
    heard.hands.have_files([suspect.job.id])
    assert trials.on_trial == (suspect.job.id,)
    assert len(trials._groups) == 1
    heard.hands.forget(suspect)
    assert not trials.on_trial, "it was on trial once"


def test_a_job_that_is_withdrawn_stays_out_of_the_engine_until_it_is_reinstated() -> None:
    heard = Heard()
    running = heard.take(make_running())
    heard.hands.withdraw(running)
    assert (running.absent, heard.events) == ([], ["out going on"])
    heard.hands.reinstate(running)
    assert (running.absent, heard.events[1:]) == (running.choices, ["fill"])


def test_a_job_that_comes_with_two_crashes_is_a_suspect_and_one_that_has_ended_is_not() -> None:
    heard = Heard()
    first, second = make_running("first"), make_running("second")
    first.crashes = second.crashes = 2
    second.end(TurnState.CANCELLED)
    heard.hands.take(second)
    assert not heard.hands.trials.on_trial
    heard.hands.take(first)
    assert heard.hands.trials.on_trial == (first.job.id,)


def test_a_new_engine_is_filled_and_makes_room() -> None:
    heard = Heard()
    heard.hands.has_engine = False
    heard.hands.restored()
    assert heard.hands.has_engine
    assert heard.events == ["fill", "room"]


def test_hands_are_full_with_sixteen_jobs_a_slot() -> None:
    hands = Hands(Trials(strike_limit=3))
    hands.slots = 2
    for number in range(31):
        hands.take(make_running(f"turn_{number}"))
    assert not hands.is_full
    hands.take(make_running("last"))
    assert hands.is_full
