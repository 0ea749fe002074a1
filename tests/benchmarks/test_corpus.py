"""The corpus of chats, the loads that are made of it, and the arithmetic of speculation's figures."""

from collections import Counter

import pytest
from benchmarks.measures.corpus import KINDS, BadCorpus, Message, parse_corpus, read_corpus
from benchmarks.measures.load import Answer
from benchmarks.measures.loads import Chat, Looping, TooFewMessages
from benchmarks.measures.speculation import Drafts, acceptance, drafts_of, parse_drafts

LONGEST_CHARACTERS = 1200
"""Prompt and answer must find room in the 1,024 tokens that every engine gives a stream."""


def test_the_corpus_has_two_hundred_messages_of_every_kind_in_several_languages() -> None:
    corpus = read_corpus()
    kinds, languages = (Counter(getattr(each, name) for each in corpus) for name in ("kind", "language"))
    assert len(corpus) >= 200
    assert kinds.keys() == set(KINDS)
    assert min(kinds.values()) >= 20
    assert len(languages) >= 10
    assert sum(count for language, count in languages.items() if language != "en") >= 60
    assert max(len(each.text) for each in corpus) <= LONGEST_CHARACTERS


def test_a_summary_comes_with_the_text_to_summarise() -> None:
    assert all("\n\n" in each.text for each in read_corpus() if each.kind == "summary")


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        '{"kind": "question", "text": "without a language"}',
        '{"kind": "riddle", "language": "en", "text": "of an unknown kind"}',
        '{"kind": "question", "language": "en", "text": " "}',
        '{"kind": "question", "language": "en", "text": "first"}',
    ],
)
def test_a_bad_line_is_named_by_its_number(line: str) -> None:
    with pytest.raises(BadCorpus, match="line 2"):
        parse_corpus(['{"kind": "question", "language": "en", "text": "first"}', line])


def make_chat(num_messages: int = 30) -> Chat:
    messages = [Message(kind="question", language="en", text=f"question {number}") for number in range(num_messages)]
    return Chat(messages=messages, streams=(1, 2), render=lambda text: f"<{text}>", asks_of_a_stream=3, fewest=4)


def test_every_engine_is_asked_the_same_round_and_no_message_twice() -> None:
    chat = make_chat()
    rounds = [(number, streams) for number in range(3) for streams in (1, 2)]
    asked = [ask for number, streams in rounds for ask in chat.asks("axon", number, streams)]
    assert asked == [ask for number, streams in rounds for ask in chat.asks("peer", number, streams)]
    assert len(asked) == len({ask.message for ask in asked}) == 3 * (4 + 6)
    assert all(ask.ends_itself and ask.temperature == 0.8 and ask.prompt == f"<{ask.message}>" for ask in asked)


def test_a_corpus_that_would_be_asked_twice_is_too_small() -> None:
    make_chat(30).check(3)
    with pytest.raises(TooFewMessages, match="ask 30 messages, and the corpus has 29"):
        make_chat(29).check(3)


def test_the_corpus_is_large_enough_for_the_default_run() -> None:
    Chat(messages=read_corpus(), streams=(1, 4, 16), render=str).check(3)


def test_random_words_are_fresh_for_every_engine_and_round() -> None:
    looping = Looping()
    first, other, later = (looping.asks(*each, 4)[0].prompt for each in (("axon", 0), ("peer", 0), ("axon", 1)))
    assert len({first, other, later}) == 3
    assert len(looping.asks("axon", 0, 1)) == 2


def test_drafts_are_counted_from_metrics_or_from_the_streams() -> None:
    metrics = (
        "# HELP axon_draft_tokens_total Guessed tokens.\n"
        'axon_draft_tokens_total{model="m",source="lookup",stage="drafted",version="v"} 30.0\n'
        'axon_draft_tokens_total{model="m",source="model",stage="drafted",version="v"} 10.0\n'
        'axon_draft_tokens_total{model="m",source="model",stage="accepted",version="v"} 10.0\n'
    )
    assert parse_drafts(metrics) == Drafts(40.0, 10.0)
    assert parse_drafts("") == Drafts(0.0, 0.0)
    assert Drafts(40.0, 10.0).since(Drafts(30.0, 4.0)) == Drafts(10.0, 6.0)
    answer = Answer(started=0.0, stamps=(1.0,), num_tokens=5, num_drafted=3, num_accepted=1)
    assert drafts_of([answer, answer]) == Drafts(6, 2)


def test_acceptance_is_the_share_of_drafts_that_were_right() -> None:
    assert acceptance(Drafts(50, 20), num_tokens=100) == {"drafts_per_token": 0.5, "acceptance": 0.4}
    assert acceptance(Drafts(), num_tokens=100) == {"drafts_per_token": 0.0, "acceptance": 0.0}
