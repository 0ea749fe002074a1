"""A tool call in pieces: pieces add up, and a call's id follows from its place alone."""

from axon.domain.content.tool_call import CallPiece, call_id


def test_a_piece_takes_more_arguments_at_its_end() -> None:
    assert CallPiece(1, "look", '{"a"').plus(":1}") == CallPiece(1, "look", '{"a":1}')


def test_every_call_of_a_turn_has_an_id_of_its_own_and_always_the_same() -> None:
    ids = [
        call_id(turn, choice, index) for turn in ("chatcmpl-1", "chatcmpl-2") for choice in (0, 1) for index in (0, 1)
    ]
    assert len(set(ids)) == len(ids)
    assert call_id("chatcmpl-1", 0, 0) == ids[0]
    assert all(each.startswith("call_") for each in ids)
