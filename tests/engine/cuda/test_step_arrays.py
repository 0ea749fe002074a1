"""What travels to the device: slots, block tables, random numbers, and steps as arrays. Needs no GPU."""

from dataclasses import replace

import numpy as np
import pytest

from axon.domain.sampling import Sampling
from axon.engine.batch import PLACEHOLDER, Draw, Span
from axon.engine.cuda.sample.uniform import first_state, uniforms
from axon.engine.cuda.step.step_arrays import Chunks, Decodes, halve, layout, order, pack_mixed, places_of
from axon.engine.cuda.step.table_slots import Slots
from axon.engine.sample.uniform import uniform


def make_span(
    arrival: int,
    *,
    first: int = 0,
    ids: tuple[int, ...] = (5,),
    blocks: tuple[int, ...] = (0,),
    admission: int = 1,
    is_drawn: bool = True,
    temperature: float = 0.5,
    position: int = 0,
    given: tuple[int, ...] = (),
) -> Span:
    draw = Draw(sampling=Sampling(max_tokens=9, temperature=temperature), seed=arrival, choice=1, position=position)
    return Span(
        id=str(arrival),
        first=first,
        token_ids=ids,
        block_ids=blocks,
        draw=draw if is_drawn else None,
        scores=tuple(replace(draw, given=token) for token in given),
        arrival=arrival,
        admission=admission,
    )


def test_numbers_are_those_of_a_draw_by_itself() -> None:
    seeds = [0, 1, -7, 2**63, 2**64 + 5]
    states = np.array([first_state(seed, choice) for seed in seeds for choice in (0, 3)], np.uint64)
    positions = np.array([0, 1, 2, 500, 7, 9, 1_000_000, 3, 4, 5], np.int64)
    keys = [(seed, choice) for seed in seeds for choice in (0, 3)]
    expected = [uniform(*key, int(position)) for key, position in zip(keys, positions, strict=True)]
    assert uniforms(states, positions).tolist() == expected


def test_a_sequence_keeps_its_slot_and_only_new_blocks_travel() -> None:
    slots = Slots(2, 8)
    [slot] = slots.take([make_span(0)])
    assert slots.new_blocks(make_span(0, blocks=(4, 6)), slot) == (slot * 8, (4, 6))
    assert slots.take([make_span(1), make_span(0)])[1] == slot
    assert slots.new_blocks(make_span(0, blocks=(4, 6)), slot) == (slot * 8 + 2, ())
    assert slots.new_blocks(make_span(0, blocks=(4, 6, 7)), slot) == (slot * 8 + 2, (7,))


def test_another_admission_has_all_its_blocks_written_anew() -> None:
    slots = Slots(1, 8)
    [slot] = slots.take([make_span(0)])
    slots.new_blocks(make_span(0, blocks=(4, 6)), slot)
    assert slots.new_blocks(make_span(0, blocks=(3, 1), admission=2), slot) == (0, (3, 1))


def test_a_slot_that_the_step_does_not_need_is_given_away() -> None:
    slots = Slots(2, 8)
    first = slots.take([make_span(0), make_span(1)])
    assert slots.take([make_span(2), make_span(1)]) == first
    [slot] = slots.take([make_span(0)])
    assert slots.new_blocks(make_span(0, blocks=(4,)), slot) == (slot * 8, (4,))


def test_the_longest_unused_slot_goes_first() -> None:
    slots = Slots(3, 8)
    a, b, c = slots.take([make_span(0), make_span(1), make_span(2)])
    slots.take([make_span(1)])
    slots.take([make_span(2)])
    assert slots.take([make_span(3)]) == [a]
    assert slots.take([make_span(4)]) == [b]
    assert slots.take([make_span(5)]) == [c]


def test_decodes_are_written_row_by_row_and_padded() -> None:
    decodes, slots = Decodes(4), Slots(4, 8)
    views = decodes.views(np.full(decodes.num_words, 77, np.int32), np.float32, np.float64)
    spans = [
        make_span(3, first=9, ids=(PLACEHOLDER,), blocks=(0, 1, 2), temperature=0.0),
        make_span(8, first=0, ids=(42,), blocks=(5,), position=6),
    ]
    packed = decodes.write(views, spans, slots, {3: 12})
    decodes.pad(views, 2, 4, slots)
    assert views["ids"][:4].tolist() == [-13, 42, 0, 0]
    assert views["positions"][:4].tolist() == [9, 0, 0, 0]
    assert views["slots"][:4].tolist() == [*packed.slots, 4, 4]
    assert views["new_places"][:4].tolist() == [-1, packed.slots[1] * 8, -1, -1]
    assert views["new_blocks"][1] == 5
    assert (packed.new_places, packed.new_blocks) == ([packed.slots[0] * 8 + n for n in range(3)], [0, 1, 2])
    assert views["inverse_temperatures"][:4].tolist() == [0.0, 2.0, 0.0, 0.0]
    assert views["numbers"][1] == uniform(8, 1, 6)


def test_a_mixed_step_has_decodes_first_and_tiles_of_its_chunks() -> None:
    slots = Slots(4, 8)
    chunk = make_span(0, first=4, ids=(1, 2, 3, 4, 5), blocks=(0, 1, 2), is_drawn=False)
    decode = make_span(1, first=7, ids=(PLACEHOLDER,), blocks=(3, 4))
    last = make_span(2, first=0, ids=(8, 9), blocks=(5,))
    spans = order([chunk, decode, last])
    assert spans == [decode, chunk, last]
    mixed, packed = pack_mixed(spans, slots, {1: 0}, 4)
    arrays = mixed.arrays
    assert (mixed.num_decodes, mixed.num_rows) == (1, 8)
    assert arrays["ids"].tolist() == [-1, 1, 2, 3, 4, 5, 8, 9]
    assert arrays["positions"].tolist() == [7, 4, 5, 6, 7, 8, 0, 1]
    assert arrays["drawn_rows"].tolist() == [0, 7]
    assert arrays["slots"].tolist() == [packed.slots[0], *[packed.slots[1]] * 5, *[packed.slots[2]] * 2]
    assert arrays["tiles"].tolist() == [
        [5, 1, 8, packed.slots[1]],
        [1, 4, 4, packed.slots[1]],
        [6, 2, 0, packed.slots[2]],
    ]
    assert sorted(packed.new_blocks) == [0, 1, 2, 3, 4, 5]


def test_halves_of_a_step_come_to_the_same() -> None:
    a, b, c = make_span(0), make_span(1, ids=(1, 2)), make_span(2)
    assert halve([a, b, c]) == ([a], [b, c])
    halves = halve([make_span(0, first=3, ids=(1, 2, 3))])
    assert halves is not None
    [[head], [tail]] = halves
    assert (head.first, head.token_ids, head.draw) == (3, (1,), None)
    assert (tail.first, tail.token_ids, tail.draw) == (4, (2, 3), a.draw)
    assert halve([a]) is None


@pytest.mark.parametrize("num_numbers", [0, 1, 8, 9])
def test_arrays_in_one_buffer_start_where_eight_byte_numbers_may(num_numbers: int) -> None:
    starts, num_words = layout({"a": np.zeros(3, np.int32), "b": np.zeros(num_numbers), "c": np.zeros(1, np.int32)})
    assert all(start % 2 == 0 for start in starts.values())
    assert starts["c"] - starts["b"] >= 2 * num_numbers
    assert num_words >= starts["c"] + 1


def test_rows_whose_next_token_is_scored_stand_before_the_drawn_one() -> None:
    spans = order(
        [
            make_span(0, ids=(1, 2, 3, 4), given=(2, 3, 4)),
            make_span(1, first=4, ids=(5, 6), given=(6, 7), is_drawn=False),
            make_span(2, first=9),
            make_span(3, ids=(8, 9)),
        ]
    )
    arrays = pack_mixed(spans, Slots(4, 8), {}, 64)[0].arrays
    rows = dict(zip(arrays["scored_rows"].tolist(), arrays["given"].tolist(), strict=True))
    assert {int(arrays["ids"][row]): token for row, token in rows.items()} == {1: 2, 2: 3, 3: 4, 5: 6, 6: 7}
    assert arrays["ids"][arrays["drawn_rows"]].tolist() == [5, 4, 9]
    assert "scored_rows" not in pack_mixed([make_span(2)], Slots(4, 8), {}, 64)[0].arrays


@pytest.mark.parametrize("is_drawn", [False, True])
@pytest.mark.parametrize("num_scores", range(5))
def test_halves_of_a_span_score_together_what_it_scores(num_scores: int, is_drawn: bool) -> None:
    given = tuple(range(num_scores))
    span = make_span(0, ids=(1, 2, 3, 4, 5), given=given, is_drawn=is_drawn)
    halves = halve([span])
    assert halves is not None
    [head], [tail] = halves
    assert tuple(draw.given for draw in (*head.scores, *tail.scores)) == given
    assert [*_result_positions(head), *_result_positions(tail)] == _result_positions(span)
    assert len(tail.draws) <= len(tail.token_ids)


def _result_positions(span: Span) -> list[int]:
    return list(range(span.end - len(span.draws), span.end))


def with_drafts(span: Span, *drafts: int) -> Span:
    """The span with draft tokens behind it, and a draw behind each."""
    assert span.draw is not None
    draws = tuple(replace(span.draw, position=span.draw.position + 1 + index) for index in range(len(drafts)))
    return replace(span, token_ids=(*span.token_ids, *drafts), drafts=draws)


def test_a_token_is_drawn_behind_each_draft_with_the_number_of_its_position() -> None:
    slots = Slots(4, 8)
    drafting = with_drafts(make_span(0, first=6, blocks=(0, 1), position=2), 7, 8)
    plain, prompt = make_span(1, first=3, ids=(9,), position=5), make_span(2, ids=(1, 2), blocks=(4,), is_drawn=False)
    spans = order([drafting, plain, prompt])
    mixed, _ = pack_mixed(spans, slots, {}, 8, as_chunks=True)
    assert mixed.arrays["ids"].tolist() == [9, 5, 7, 8, 1, 2]
    assert mixed.arrays["drawn_rows"].tolist() == [0, 1, 2, 3]
    assert mixed.arrays["numbers"].tolist() == [uniform(1, 1, 5), *(uniform(0, 1, n) for n in (2, 3, 4))]
    assert len(mixed.arrays["inverse_temperatures"]) == 4
    assert places_of(spans) == {1: 0, 0: 1}


@pytest.mark.parametrize("num_drafts", range(1, 9))
def test_halves_of_a_span_with_drafts_draw_together_what_it_draws(num_drafts: int) -> None:
    span = with_drafts(make_span(0, first=6, position=2), *range(num_drafts))
    halves = halve([span])
    assert halves is not None
    [head], [tail] = halves
    assert head.token_ids + tail.token_ids == span.token_ids
    assert head.drawn + tail.drawn == span.drawn
    assert (len(head.drawn), tail.first) == (len(head.token_ids), head.end)


def test_a_padded_step_of_runs_has_room_for_a_draw_and_a_tile_of_every_row() -> None:
    slots, shape = Slots(16, 8), Chunks(16, 8, max_spans=16)
    spans = [make_span(index, first=index) for index in range(16)]
    padded = shape.pad(pack_mixed(spans, slots, {}, 8, as_chunks=True)[0].arrays, slots.spare_slot)
    assert padded["tiles"][:, 1].tolist() == [1] * 16
    assert padded["drawn_rows"].tolist() == list(range(16))
