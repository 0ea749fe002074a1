"""One attempt at a job of several choices: their order in the stream does not depend on their pace."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.log.chunk import Chunk, End
from axon.domain.turn import TurnState
from axon.worker.job.running import Running, Terminal
from tests.worker.job.builders import make_running, push, run, said, stop_strings, text_of


def test_choices_stand_in_the_order_of_position_and_choice_whichever_was_first() -> None:
    running = make_running(choices=2)
    push(running, 98, choice=1)
    push(running, 66, "stop", choice=1)
    assert running.pending() is None
    push(running, 97, choice=0)
    assert [(token.choice, token.text) for token in running.tokens] == [(0, "a"), (1, "b")]
    assert running.ends == []
    push(running, 65, choice=0)
    assert [(token.choice, token.text) for token in running.tokens[2:]] == [(0, "A"), (1, "B")]
    assert running.ends == [End(1, "stop", 4)]
    push(running, 33, "length", choice=0)
    assert (running.ends[1:], running.terminal) == ([End(0, "length", 5)], Terminal(TurnState.COMPLETED))


def test_an_end_is_told_with_its_choices_last_token_and_again_at_the_end_of_all() -> None:
    running = make_running(choices=2)
    push(running, 97, "stop", choice=0)
    push(running, 98, choice=1)
    first = running.pending()
    assert first is not None
    assert first.ends == (End(0, "stop", 1),)
    running.sent = first.last
    push(running, 99, choice=1)
    second = running.pending()
    assert second is not None
    assert second.ends == ()
    running.sent = second.last
    push(running, 99, "length", choice=1)
    last = running.pending()
    assert last is not None
    assert last.ends == (End(0, "stop", 1), End(1, "length", 4))


answers = st.lists(st.text("ab\né", min_size=1, max_size=10).map(str.encode), min_size=1, max_size=4)


def play(running: Running, texts: list[bytes], order: Iterable[int]) -> None:
    """Pushes what each choice still lacks; ``order`` says whose token the engine has next, as often as it says."""
    left = {choice.index: list(texts[choice.index][len(choice.token_ids) :]) for choice in running.absent}
    turns = iter(order)
    while left and running.terminal is None:
        index = sorted(left)[next(turns, 0) % len(left)]
        token_id = left[index].pop(0)
        if push(running, token_id, None if left[index] else "length", choice=index) or not left[index]:
            del left[index]


@settings(deadline=None)
@given(answers, stop_strings, st.lists(st.integers(0, 3), max_size=60))
def test_the_stream_of_many_choices_does_not_depend_on_their_pace(
    texts: list[bytes], stop: tuple[str, ...], order: list[int]
) -> None:
    even, uneven = make_running(stop=stop, choices=len(texts)), make_running(stop=stop, choices=len(texts))
    play(even, texts, ())
    play(uneven, texts, order)
    assert said(uneven.whole()) == said(even.whole())
    for index, text in enumerate(texts):
        alone = run(make_running(stop=stop), text)
        assert text_of(token for token in even.tokens if token.choice == index) == text_of(alone.tokens)
        assert [end.reason for end in even.ends if end.choice == index] == [end.reason for end in alone.ends]


@settings(deadline=None)
@given(answers, stop_strings, st.lists(st.integers(0, 3), max_size=60), st.data())
def test_many_choices_taken_over_at_any_token_go_on_as_if_nothing_had_happened(
    texts: list[bytes], stop: tuple[str, ...], order: list[int], data: st.DataObject
) -> None:
    undisturbed = make_running(stop=stop, choices=len(texts))
    play(undisturbed, texts, ())
    seq = data.draw(st.integers(0, len(undisturbed.tokens) - 1), label="seq of the log's last token")
    cut = data.draw(st.integers(0, seq), label="where it was cut into chunks")
    whole = undisturbed.whole()
    pieces = [
        Chunk(
            first=first + 1,
            epoch=1,
            tokens=whole.tokens[first:last],
            ends=tuple(end for end in whole.ends if end.at is not None and first < end.at <= last),
        )
        for first, last in ((0, cut), (cut, seq))
    ]
    taken_over = make_running(stop=stop, epoch=1, choices=len(texts))
    taken_over.replay(pieces)
    assert taken_over.pending() is None
    play(taken_over, texts, order)
    assert said(taken_over.whole()) == said(whole)


def test_of_many_choices_the_tokens_that_had_no_place_are_wasted_once() -> None:
    running = make_running(choices=2)
    push(running, 65, choice=1)
    push(running, 66, choice=1)
    running.end(TurnState.EXPIRED)
    running.cancel()
    assert running.whole().ledger is not None
    assert (running.whole().terminal, running.whole().ledger.wasted) == ("cancelled", 2)  # type: ignore[union-attr]
