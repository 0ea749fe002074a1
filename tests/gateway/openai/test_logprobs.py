"""Log probabilities in OpenAI's two shapes: every list as long as the tokens, bytes exact, nothing that JSON lacks."""

import json
import math
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.log.chunk import Details, Likely, Ranked, ScoredToken, Token
from axon.gateway.openai import logprobs

values = st.floats(max_value=0, allow_nan=False)
"""Log probabilities; minus infinity is one."""
likely = st.builds(Likely, st.binary(max_size=4), values)
tops = st.lists(likely, max_size=3).map(tuple)


def token(data: bytes, logprob: float | None, top: Sequence[Likely] = (), offset: int = 0) -> Token:
    details = Details(data=data, logprob=logprob, top=tuple(top), offset=offset) if logprob is not None else None
    return Token(0, 1, data.decode(errors="replace"), details)


tokens = st.builds(token, st.binary(min_size=1, max_size=4), values, tops, st.integers(0, 50))
scored = st.builds(ScoredToken, st.binary(min_size=1, max_size=4), st.none() | values, tops)


@given(st.lists(tokens, min_size=1, max_size=6))
def test_a_chat_has_an_entry_for_every_token_with_its_exact_bytes(said: list[Token]) -> None:
    found = logprobs.of_chat(said)
    assert found is not None
    assert found["refusal"] is None
    assert [bytes(entry["bytes"]) for entry in found["content"]] == [each.details.data for each in said if each.details]
    for entry, each in zip(found["content"], said, strict=True):
        assert each.details is not None
        assert [bytes(other["bytes"]) for other in entry["top_logprobs"]] == [
            other.data for other in each.details.top or ()
        ]
    json.dumps(found, allow_nan=False)


@given(st.lists(tokens, min_size=1, max_size=6), st.lists(scored, max_size=4), st.booleans(), st.integers(0, 99))
def test_a_completion_has_four_lists_of_one_length(
    said: list[Token], prompt: list[ScoredToken], prompt_only: bool, num_before: int
) -> None:
    first = said[0]
    assert first.details is not None
    told = Details(
        data=first.details.data,
        logprob=first.details.logprob,
        top=first.details.top,
        offset=first.details.offset,
        prompt=tuple(prompt),
    )
    found = logprobs.of_completion(
        [first._replace(details=told), *said[1:]], echoed_top=2, num_before=num_before, prompt_only=prompt_only
    )
    assert found is not None
    num = len(prompt) + (0 if prompt_only else len(said))
    assert {name: len(column) for name, column in found.items()} == dict.fromkeys(
        ("tokens", "token_logprobs", "top_logprobs", "text_offset"), num
    )
    assert found["text_offset"][len(prompt) :] == (
        [] if prompt_only else [num_before + (each.details.offset or 0) for each in said if each.details]
    )
    json.dumps(found, allow_nan=False)


@given(st.text(min_size=1, max_size=12), st.lists(st.integers(1, 40), max_size=8))
def test_a_piece_of_a_prompt_begins_where_its_first_whole_character_stands(text: str, places: list[int]) -> None:
    data = text.encode()
    edges = sorted({0, len(data), *(place for place in places if place < len(data))})
    pieces = [data[start:end] for start, end in pairwise(edges)]
    prompt = tuple(ScoredToken(piece, -1.0) for piece in pieces)
    answer = Token(0, 1, "", Details(data=b"x", logprob=-1.0, top=(), offset=0, prompt=prompt))
    found = logprobs.of_completion([answer], echoed_top=0, prompt_only=True)
    assert found is not None
    whole_characters = [len(data[:edge].decode(errors="ignore")) for edge in edges[:-1]]
    assert found["text_offset"] == whole_characters


def test_the_first_token_of_a_prompt_has_no_log_probability_and_no_likely_ones() -> None:
    prompt = (ScoredToken(b"a", None), ScoredToken(b"b", -2.0, (Likely(b"c", -0.5),)))
    said = Token(0, 1, "d", Details(data=b"d", logprob=-1.0, top=(Likely(b"d", -1.0),), offset=0, prompt=prompt))
    found = logprobs.of_completion([said], echoed_top=1, num_before=2)
    assert found == {
        "tokens": ["a", "b", "d"],
        "token_logprobs": [None, -2.0, -1.0],
        "top_logprobs": [None, {"c": -0.5}, {"d": -1.0}],
        "text_offset": [0, 1, 2],
    }
    fewer = logprobs.of_completion([said], echoed_top=0, num_before=2)
    assert fewer == {**found, "top_logprobs": [None, {}, {"d": -1.0}]}
    unechoed = logprobs.of_completion([said])
    assert unechoed is not None
    assert (unechoed["tokens"], unechoed["text_offset"]) == (["d"], [0]), "a prompt that is not echoed is not there"


def test_vllm_has_a_map_of_token_ids_for_every_prompt_token_but_the_first() -> None:
    half = "é".encode()[:1]
    prompt = (
        ScoredToken(b"a", None),
        ScoredToken(b"b", -2.0, (Likely(b"c", -0.5), Likely(half, -1.5))),
        ScoredToken(b"c", -0.25, (Likely(b"c", -0.25), Likely(b"a", -math.inf))),
    )
    details = Details(prompt=prompt, ranks=(Ranked(7, (99, 5)), Ranked(1, (99, 97))))
    said = [Token(0, 1, "d", details), Token(0, 2, "e")]
    b = {"logprob": -2.0, "rank": 7, "decoded_token": "b"}
    c = {"logprob": -0.5, "rank": 1, "decoded_token": "c"}
    own = {"logprob": -0.25, "rank": 1, "decoded_token": "c"}
    found = logprobs.of_prompt([97, 98, 99], said, 2)
    assert found == [
        None,
        {"98": b, "99": c, "5": {"logprob": -1.5, "rank": 2, "decoded_token": "\ufffd"}},
        {"99": own, "97": {"logprob": -9999.0, "rank": 2, "decoded_token": "a"}},
    ]
    assert found[1] is not None
    assert list(found[1]) == ["98", "99", "5"], "its own token first, then the likeliest in order"
    assert logprobs.of_prompt([97, 98, 99], said, 1) == [None, {"98": b, "99": c}, {"99": own}]
    assert logprobs.of_prompt([97, 98, 99], said, 0) == [None, {"98": b}, {"99": own}]
    json.dumps(found, allow_nan=False)


def test_a_prompt_of_one_token_has_none_and_an_answer_without_tokens_says_nothing() -> None:
    said = [Token(0, 1, "d", Details(prompt=(ScoredToken(b"a", None),)))]
    assert logprobs.of_prompt([97], said, 3) == [None]
    assert logprobs.of_prompt([97], [], 3) is None


def test_what_cannot_be_is_told_as_a_number_that_json_has() -> None:
    found = logprobs.of_chat([token(b"a", -math.inf, (Likely(b"b", -math.inf),))])
    assert found is not None
    [entry] = found["content"]
    assert (entry["logprob"], entry["top_logprobs"][0]["logprob"]) == (-9999.0, -9999.0)


def test_half_a_character_is_shown_as_a_replacement_and_told_in_bytes() -> None:
    found = logprobs.of_chat([token("é".encode()[:1], -1.0)])
    assert found is not None
    assert (found["content"][0]["token"], found["content"][0]["bytes"]) == ("\ufffd", [0xC3])


def test_nobody_who_did_not_ask_is_told_anything() -> None:
    silent = [Token(0, 1, "a"), token(b"b", None), Token(0, 2, "", Details(reasoning="hm"))]
    assert logprobs.of_chat(silent) is None
    assert logprobs.of_completion(silent, num_before=3) is None
    assert logprobs.of_chat([]) is None
