"""Golden prompts: a version that answers one of them wrongly is not begun with."""

import asyncio
from dataclasses import replace

import pytest

from axon.control.golden import MOST_TRIES, GoldenChecks
from axon.domain.registry.golden import Golden
from axon.domain.registry.rollout import Rollout
from axon.errors import AxonError, DependencyDown, InvalidInput, Unavailable
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import rollout

FRANCE = Golden(prompt="The capital of France?", expected="Paris")
SUM = Golden(prompt="2+2=", expected="4", exactly=True)


def with_golden(*golden: Golden) -> Rollout:
    return replace(rollout(), golden=golden)


class Model:
    """Answers by heart."""

    def __init__(self, **answers: str) -> None:
        self.answers = {FRANCE.prompt: "It is Paris.", SUM.prompt: " 4\n"} | answers
        self.asked: list[tuple[str, str, str]] = []
        self.fails = 0
        self.error: AxonError = Unavailable("Every token asked for has been emitted already.")

    async def ask(self, deployment: str, version: str, golden: Golden) -> str:
        self.asked.append((deployment, version, golden.prompt))
        if self.fails:
            self.fails -= 1
            raise self.error
        return self.answers[golden.prompt]


@pytest.mark.parametrize(
    ("golden", "answer", "passes"),
    [
        (FRANCE, "It is Paris.", True),
        (FRANCE, "It is paris.", False),
        (SUM, " 4\n", True),
        (SUM, "4.", False),
    ],
)
def test_an_answer_contains_what_is_expected_or_is_exactly_that(golden: Golden, answer: str, passes: bool) -> None:
    assert golden.accepts(answer) is passes


async def test_a_version_that_answers_as_expected_passes() -> None:
    model = Model()
    checks, going = GoldenChecks(model.ask), with_golden(FRANCE, SUM)
    assert checks.result("small", going) is None
    await checks.look()
    assert checks.result("small", going) == ""
    assert model.asked == [("small", "small@v2", FRANCE.prompt), ("small", "small@v2", SUM.prompt)]
    await checks.look()
    assert len(model.asked) == 2


async def test_a_wrong_answer_is_named_with_what_was_expected() -> None:
    checks, going = GoldenChecks(Model(**{SUM.prompt: "5"}).ask), with_golden(FRANCE, SUM)
    checks.result("small", going)
    await checks.look()
    assert checks.result("small", going) == "golden prompt 2 of 2: the answer '5' is not '4'"


async def test_a_rollout_without_golden_prompts_passes_at_once() -> None:
    assert GoldenChecks(Model().ask).result("small", rollout()) == ""


async def test_a_check_that_could_not_be_made_is_made_again() -> None:
    model = Model()
    model.fails = 1
    clock = FakeClock()
    checks, going = GoldenChecks(model.ask, monotonic=clock.monotonic), with_golden(FRANCE)
    checks.result("small", going)
    await checks.look()
    assert checks.result("small", going) is None
    assert "golden prompt 1 of 1 was not answered: Every token" in checks.problem(going)
    clock.advance(1.0)
    await checks.look()
    assert checks.result("small", going) == ""


async def test_a_prompt_that_is_never_answered_is_asked_a_few_times_and_then_does_not_pass() -> None:
    model, clock = Model(), FakeClock()
    model.fails = 1000
    checks, going = GoldenChecks(model.ask, monotonic=clock.monotonic), with_golden(FRANCE, SUM)
    for _ in range(600):
        checks.result("small", going)
        await checks.look()
        clock.advance(0.5)
    assert len(model.asked) == MOST_TRIES
    reason = "golden prompt 1 of 2 was not answered: Every token asked for has been emitted already. (8 tries)"
    assert checks.result("small", going) == reason


async def test_a_lost_queue_is_not_held_against_the_version() -> None:
    model, clock = Model(), FakeClock()
    model.fails, model.error = 3 * MOST_TRIES, DependencyDown("The queue is away.")
    checks, going = GoldenChecks(model.ask, monotonic=clock.monotonic), with_golden(FRANCE)
    for _ in range(4 * MOST_TRIES):
        checks.result("small", going)
        await checks.look()
        clock.advance(0.5)
    assert checks.result("small", going) == ""


async def test_an_answer_that_never_comes_is_not_waited_for() -> None:
    async def never(deployment: str, version: str, golden: Golden) -> str:
        await asyncio.Event().wait()
        return ""

    checks, going = GoldenChecks(never, deadline_s=0.01), with_golden(FRANCE)
    checks.result("small", going)
    await checks.look()
    assert checks.result("small", going) is None


async def test_a_forgotten_rollout_is_not_asked_about() -> None:
    model = Model()
    checks, going = GoldenChecks(model.ask), with_golden(FRANCE)
    checks.result("small", going)
    checks.forget(going.id)
    await checks.look()
    assert not model.asked


async def test_a_prompt_that_cannot_be_asked_is_told_and_not_tried_for_ever() -> None:
    async def too_long(deployment: str, version: str, golden: Golden) -> str:
        raise InvalidInput("The prompt has 10000 tokens or more; the model's context has 4096.")

    checks, going = GoldenChecks(too_long), with_golden(SUM)
    assert checks.result("small", going) is None
    await checks.look()
    assert checks.result("small", going) == (
        "golden prompt 1 of 1 cannot be asked: The prompt has 10000 tokens or more; the model's context has 4096."
    )


async def test_a_check_that_breaks_leaves_the_others_theirs() -> None:
    model, other = Model(), replace(with_golden(SUM), id="ro_2")

    async def broken(deployment: str, version: str, golden: Golden) -> str:
        if golden is FRANCE:
            raise ValueError("of a template")
        return await model.ask(deployment, version, golden)

    checks, going = GoldenChecks(broken), with_golden(FRANCE)
    assert checks.result("small", going) is checks.result("small", other) is None
    await checks.look()
    assert checks.result("small", going) is None
    assert checks.result("small", other) == ""
