"""``best_of``: of each prompt's answers the likeliest by the token, the best first, and never one of another prompt."""

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.job import Job
from axon.domain.log.chunk import Details, Token
from axon.domain.reply import ChatReply, CompletionReply
from axon.gateway.openai.best_of import chosen, is_chosen_from
from tests.contracts.builders import make_job


def asked(*, best: int, num_each: int, num_prompts: int = 1) -> Job:
    return make_job(
        reply=CompletionReply(best=best), choices=num_each * num_prompts, more_prompts=((1, 2),) * (num_prompts - 1)
    )


def answer(*logprobs: float) -> list[Token]:
    return [Token(0, 1, "x", Details(data=b"x", logprob=value, top=(), offset=0)) for value in logprobs]


def mean(tokens: list[Token]) -> float:
    found = [token.details.logprob or 0.0 for token in tokens if token.details]
    return sum(found) / len(found) if found else float("-inf")


@given(
    num_prompts=st.integers(1, 3),
    num_each=st.integers(1, 4),
    best=st.integers(1, 4),
    data=st.data(),
)
def test_of_each_prompt_the_best_are_returned_and_no_other_is_better(
    num_prompts: int, num_each: int, best: int, data: st.DataObject
) -> None:
    best = min(best, num_each)
    values = st.lists(st.integers(-9, 0).map(float), max_size=4)
    said = [answer(*data.draw(values)) for _ in range(num_prompts * num_each)]
    found = chosen(asked(best=best, num_each=num_each, num_prompts=num_prompts), said)
    assert len(found) == best * num_prompts
    for prompt in range(num_prompts):
        own = range(prompt * num_each, (prompt + 1) * num_each)
        kept = list(found[prompt * best : (prompt + 1) * best])
        assert set(kept) <= set(own)
        assert [(-mean(said[each]), each) for each in kept] == sorted((-mean(said[each]), each) for each in own)[:best]


def test_a_long_answer_is_not_worse_for_its_length() -> None:
    said = [answer(-1.0), answer(-0.5, -0.5, -0.5), answer(-0.75)]
    assert list(chosen(asked(best=2, num_each=3), said)) == [1, 2]


def test_an_answer_without_a_token_is_the_worst_of_all() -> None:
    assert list(chosen(asked(best=2, num_each=3), [[], answer(-50.0), answer(-40.0)])) == [2, 1]


def test_without_best_of_every_choice_is_returned_in_its_order() -> None:
    said = [answer(-3.0), answer(-1.0)]
    for job in (asked(best=0, num_each=2), make_job(reply=ChatReply(), choices=2)):
        assert list(chosen(job, said)) == [0, 1]
        assert not is_chosen_from(job)
    assert is_chosen_from(asked(best=1, num_each=2))
