"""Predicted answers, by each route's and tenant's own lengths."""

import pytest

from axon.domain.job import Job
from axon.domain.sampling import Sampling
from axon.domain.turn import TurnState
from axon.ports.queue import Delivery
from axon.text.tokenizer import ByteTokenizer
from axon.worker.child.answers import Answers
from axon.worker.job.running import Running, Terminal
from tests.contracts.builders import make_job

SHORT = make_job("chatcmpl-1", tenant="acme", sampling=Sampling(max_tokens=4000))
LONG = make_job("resp_1", tenant="acme", sampling=Sampling(max_tokens=4000))
OTHER = make_job("chatcmpl-2", tenant="other", sampling=Sampling(max_tokens=4000))


def running(job: Job, tokens: int) -> Running:
    delivery = Delivery(tag=1, lane=job.lane, body=b"", redelivered=False)
    found = Running(job=job, delivery=delivery, epoch=1, tokenizer=ByteTokenizer())
    found.choices[0].token_ids += [65] * tokens
    return found


@pytest.fixture
def answers() -> Answers:
    found = Answers()
    for _ in range(400):
        found.ended(SHORT, 20)
        found.ended(LONG, 1000)
    return found


def test_answers_are_expected_by_their_route_and_tenant(answers: Answers) -> None:
    answers.took(SHORT)
    assert answers.expected == pytest.approx(20, rel=0.6)
    answers.took(LONG)
    assert answers.expected == pytest.approx(1020, rel=0.1)
    assert answers.taken == 2


def test_prompts_count_without_the_part_that_caches_hold(answers: Answers) -> None:
    answers.took(SHORT)
    whole = answers.prompt
    assert whole == SHORT.num_prompt_tokens
    for _ in range(500):
        answers.began(prefilled=10, cached=30)
    answers.took(SHORT)
    assert answers.prompt - whole == pytest.approx(whole / 4, rel=0.01)


def test_an_unknown_tenant_gets_the_mean_of_all_and_no_answer_is_longer_than_allowed(answers: Answers) -> None:
    answers.took(OTHER)
    assert answers.expected == pytest.approx(510, rel=0.1)
    bounded = Answers()
    bounded.took(make_job("chatcmpl-3", sampling=Sampling(max_tokens=5)))
    assert bounded.expected == 5


def test_what_is_left_of_what_runs_is_summed_once_a_second(answers: Answers) -> None:
    one = running(LONG, 200)
    assert answers.left([one], 10.0)[1] == pytest.approx(800, rel=0.1)
    assert answers.left([], 10.5)[1] == pytest.approx(800, rel=0.1)
    one.terminal = Terminal(TurnState.FAILED)
    assert answers.left([one], 11.0) == (0.0, 0.0)


def test_a_prompt_is_left_until_its_first_token(answers: Answers) -> None:
    assert answers.left([running(LONG, 0)], 0.0)[0] == len(LONG.prompt_ids)
    assert answers.left([running(LONG, 1)], 5.0)[0] == 0.0


def test_a_sequence_near_its_bound_has_at_most_the_rest_of_it(answers: Answers) -> None:
    bounded = make_job("resp_2", tenant="acme", sampling=Sampling(max_tokens=210))
    assert answers.left([running(bounded, 200)], 0.0)[1] == 10.0
