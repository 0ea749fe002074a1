"""A job in a worker's hands: however its tokens are cut, sent again or taken over, they make one stream."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.log.chunk import Chunk, Details, End, Likely, Token
from axon.domain.sampling import Sampling
from axon.domain.turn import TurnState
from axon.engine.protocol.messages import Emitted, Scored
from axon.ports.queue import Delivery
from axon.text.stops import StopScanner
from axon.worker.job.running import Running, Terminal
from tests.contracts.builders import make_job
from tests.worker.job.builders import TOKENIZER, joined, make_running, push, run, said, stop_strings, text_of, texts


def test_a_job_that_has_begun_has_nothing_to_tell() -> None:
    running = make_running()
    assert running.pending() is None
    assert running.tokens == []


def test_a_token_is_told_from_the_first_one_the_log_lacks() -> None:
    running = make_running(epoch=7)
    push(running, 97, None)
    push(running, 98, None)
    running.sent = 1
    assert running.pending() == Chunk(first=2, epoch=7, tokens=(Token(0, 98, "b"),))


def test_a_log_that_lost_its_tail_is_told_again() -> None:
    running = run(make_running(), b"abc")
    running.sent = 3
    running.sent = 1
    chunk = running.pending()
    assert chunk is not None
    assert (chunk.first, chunk.last, text_of(chunk.tokens)) == (2, 3, "bc")


def test_an_end_without_a_token_is_told_once() -> None:
    running = make_running()
    running.end(TurnState.CANCELLED)
    assert said(running.pending()) == Chunk(first=1, epoch=1, terminal="cancelled")
    running.end_logged = True
    assert running.pending() is None


def test_the_first_end_stays() -> None:
    running = make_running()
    running.end(TurnState.FAILED, "worker_crash", "why")
    running.end(TurnState.CANCELLED)
    assert running.terminal == Terminal(TurnState.FAILED, "worker_crash", "why")


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_the_engines_finish_ends_the_choice_for_its_reason(finish: str) -> None:
    running = make_running()
    assert not push(running, 97, None)
    assert push(running, 98, finish)
    assert running.ends == [End(0, finish, 2)]
    assert running.terminal == Terminal(TurnState.COMPLETED)


def test_a_stop_string_that_the_engines_last_token_completes_is_the_reason() -> None:
    running = make_running(stop=["b"])
    assert push(running, 98, "length")
    assert (running.ends, text_of(running.tokens)) == ([End(0, "stop", 1)], "")


def test_half_a_character_at_the_end_comes_out_as_a_replacement() -> None:
    running = run(make_running(), "é".encode()[:1])
    assert text_of(running.tokens) == "�"


def test_gained_counts_from_when_it_came_into_the_engine() -> None:
    running = make_running()
    running.replay([Chunk(first=1, epoch=1, tokens=(Token(0, 97, "a"),))])
    running.enter(running.choices[0], "s1")
    assert (running.gained, running.choices[0].sequence_id) == (0, "s1")
    push(running, 98, None)
    assert running.gained == 1


@settings(deadline=None)
@given(texts.filter(bool), stop_strings, st.integers(0, 24))
def test_the_last_token_names_the_stop_string_that_was_hit_also_after_a_replay(
    text: str, stop: tuple[str, ...], place: int
) -> None:
    first = run(make_running(stop=stop), text.encode())
    scanner = StopScanner(stop)
    scanner.push(text)
    named = [token.details.stop for token in first.tokens if token.details is not None]
    assert named == ([scanner.matched] if scanner.matched else [])
    again = make_running(stop=stop, epoch=2)
    again.replay([replace(first.whole(), terminal="").until(min(place, len(first.tokens) - 1))])
    assert run(again, text.encode()).tokens == first.tokens


@given(texts, stop_strings)
def test_the_text_is_the_whole_text_up_to_its_first_stop_string(text: str, stop: tuple[str, ...]) -> None:
    running = run(make_running(stop=stop), text.encode())
    scanner = StopScanner(stop)
    shown, hit = scanner.push(text)
    assert text_of(running.tokens) == (shown if hit else shown + scanner.flush())
    assert running.ends == ([End(0, "stop" if hit else "length", len(running.tokens))] if text else [])


@settings(deadline=None)
@given(texts.filter(bool), stop_strings, st.lists(st.integers(0, 60), max_size=40))
def test_chunks_put_together_are_the_whole_whatever_the_log_had_of_them(
    text: str, stop: tuple[str, ...], looks: list[int]
) -> None:
    """``looks`` says after how many more tokens the log is told the next time."""
    running = make_running(stop=stop)
    chunks: list[Chunk] = []
    ids = text.encode()
    waits = iter(looks)
    wait = next(waits, 0)
    for place, token_id in enumerate(ids, start=1):
        ended = push(running, token_id, "length" if place == len(ids) else None)
        if (wait <= 0 or ended) and (chunk := running.pending()) is not None:
            chunks.append(chunk)
            running.sent = chunk.last
            wait = next(waits, 0)
        wait -= 1
        if ended:
            break
    assert joined(chunks) == said(running.whole())


@settings(deadline=None)
@given(texts.filter(bool), stop_strings, st.data())
def test_a_job_taken_over_at_any_token_goes_on_as_if_nothing_had_happened(
    text: str, stop: tuple[str, ...], data: st.DataObject
) -> None:
    undisturbed = run(make_running(stop=stop), text.encode())
    seq = data.draw(st.integers(0, len(undisturbed.tokens) - 1), label="seq of the log's last token")
    cut = data.draw(st.integers(0, seq), label="where it was cut into chunks")
    tokens = tuple(undisturbed.tokens)
    taken_over = make_running(stop=stop, epoch=2)
    taken_over.replay(
        [Chunk(first=1, epoch=1, tokens=tokens[:cut]), Chunk(first=cut + 1, epoch=1, tokens=tokens[cut:seq])]
    )
    assert (taken_over.sent, taken_over.pending()) == (seq, None)
    run(taken_over, text.encode())
    assert taken_over.tokens == undisturbed.tokens
    assert (taken_over.ends, taken_over.terminal) == (undisturbed.ends, undisturbed.terminal)
    rest = taken_over.pending()
    assert rest is not None
    assert (rest.first, rest.epoch, rest.tokens) == (seq + 1, 2, tokens[seq:])


@settings(deadline=None)
@given(texts.filter(bool), stop_strings, st.lists(st.integers(0, 23), min_size=1, max_size=4))
def test_a_job_taken_over_again_and_again_goes_on_as_well(text: str, stop: tuple[str, ...], places: list[int]) -> None:
    undisturbed = run(make_running(stop=stop), text.encode())
    attempt = make_running(stop=stop)
    for epoch, place in enumerate(sorted(places), start=2):
        earlier = attempt
        attempt = make_running(stop=stop, epoch=epoch)
        attempt.replay([Chunk(first=1, epoch=epoch - 1, tokens=tuple(earlier.tokens))])
        for token_id in text.encode()[len(attempt.tokens) : min(place, len(undisturbed.tokens) - 1)]:
            push(attempt, token_id, None)
    assert run(attempt, text.encode()).tokens == undisturbed.tokens


def test_log_probabilities_travel_with_their_token_as_bytes() -> None:
    running = make_running()
    half = "é".encode()[0]
    running.push(running.choices[0], Emitted("", half, None, -0.5, [(half, -0.5), (97, -1.5)]))
    top = (Likely(bytes([half]), -0.5), Likely(b"a", -1.5))
    assert running.tokens[0].details == Details(data=bytes([half]), logprob=-0.5, top=top, offset=0)


def test_the_first_attempts_count_of_cached_tokens_stays() -> None:
    running = make_running()
    running.push(running.choices[0], Emitted("", 97, cached=2))
    chunk = running.pending()
    assert chunk is not None
    again = make_running(epoch=2)
    again.replay([chunk])
    again.push(again.choices[0], Emitted("", 98, "stop", cached=1))
    assert (chunk.cached, again.whole().cached) == (2, 2)


def test_cached_tokens_count_once_for_each_prompt_and_again_for_none_after_a_loss() -> None:
    def attempt(epoch: int) -> Running:
        return make_running(epoch=epoch, choices=4, more_prompts=((4, 5, 6, 7),))

    running = attempt(1)
    for choice, cached in ((2, 3), (0, 2), (1, 2)):  # the second prompt's first choice is ahead of its place
        running.push(running.choices[choice], Emitted("", 97, cached=cached))
    chunk = running.pending()
    assert chunk is not None
    assert ([token.choice for token in chunk.tokens], chunk.cached) == ([0, 1, 2], 2 + 3)
    short = chunk.until(2)
    again = attempt(2)
    again.replay([replace(short, cached=2)])
    for choice in range(4):
        again.push(again.choices[choice], Emitted("", 98, cached=1))
    assert again.whole().cached == 2 + 1
    last = attempt(3)
    last.replay([chunk])
    for choice in range(4):
        last.push(last.choices[choice], Emitted("", 98, cached=4))
    assert last.whole().cached == 2 + 3


@pytest.mark.parametrize(("logprobs", "prompt_top"), [(1, None), (1, 1), (None, 1)])
def test_what_is_said_of_a_prompt_comes_with_the_first_token_once(logprobs: int | None, prompt_top: int | None) -> None:
    sampling = Sampling(max_tokens=9, logprobs=logprobs, prompt_logprobs=True, prompt_top=prompt_top)
    job = make_job(prompt_ids=(97, 98, 99), sampling=sampling)
    delivery = Delivery(tag=1, lane=job.lane, body=b"", redelivered=False)
    running = Running(job=job, delivery=delivery, epoch=1, tokenizer=TOKENIZER)
    [choice] = running.choices
    running.enter(choice, "1")
    choice.score(Scored("1", [(-9.0, 7, [])]))
    running.enter(choice, "2")  # it left the engine, which says everything again
    choice.score(Scored("2", [(-1.0, 2, [(100, -0.5)])]))
    choice.score(Scored("2", [(-2.0, 9, [])]))
    for token_id in (100, 101):
        running.push(choice, Emitted("2", token_id, logprob=None if logprobs is None else -0.25))
    first, second = [token.details or Details() for token in running.whole().tokens]
    assert first.prompt == ((b"a", None, ()), (b"b", -1.0, ((b"d", -0.5),)), (b"c", -2.0, ()))
    assert first.ranks == (((2, (100,)), (9, ())) if prompt_top is not None else ())
    assert (second.prompt, second.ranks) == ((), ())
    assert first.logprob == (None if logprobs is None else -0.25)


def thinking_of(running: Running) -> str:
    return "".join(token.reasoning for token in running.tokens)


@pytest.mark.parametrize("taken_over_at", [0, 3, 9, 14, 17, 20])
def test_thinking_is_parted_from_the_answer_also_when_another_attempt_goes_on(taken_over_at: int) -> None:
    text = b"<think>hmm</think>Hello <3"
    undisturbed = run(make_running(reasoning="text"), text)
    assert (text_of(undisturbed.tokens), thinking_of(undisturbed), undisturbed.whole().reasoned) == (
        "Hello <3",
        "hmm",
        3,
    )
    attempt = make_running(reasoning="text")
    attempt.replay([Chunk(first=1, epoch=1, tokens=tuple(undisturbed.tokens[:taken_over_at]))])
    attempt.reasoned = sum(bool(token.reasoning) for token in attempt.tokens)
    assert run(attempt, text).tokens == undisturbed.tokens


def test_a_stop_string_in_the_thinking_ends_it_and_loses_nothing_before_it() -> None:
    running = run(make_running(reasoning="inside", stop=["XX"]), b"hm </tXX")
    assert (text_of(running.tokens), thinking_of(running)) == ("", "hm </t")


def test_an_attempt_is_interrupted_from_the_tokens_of_an_earlier_one_to_its_own_first() -> None:
    first = make_running()
    assert not first.is_interrupted
    push(first, 65)
    assert not first.is_interrupted
    second = make_running(epoch=2)
    second.replay([first.whole()])
    assert second.is_interrupted
    push(second, 66)
    assert not second.is_interrupted


def test_an_attempt_that_takes_over_no_token_is_not_interrupted() -> None:
    again = make_running(epoch=2)
    again.replay([], attempted=True)
    assert not again.is_interrupted
