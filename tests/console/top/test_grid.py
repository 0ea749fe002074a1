"""Tables fitted to terminals: no line is wider than the terminal, whatever is in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from axon.console.top.grid import Column, Grid, clean, cut, lines, shared_rows

THREE = (Column(title="name", is_number=False), Column(title="much", rank=2), Column(title="few", rank=1))
cells = st.text(max_size=20).map(clean)
grids = st.lists(st.tuples(cells, cells, cells), max_size=5).map(
    lambda rows: Grid(title="t", columns=THREE, rows=tuple(rows), num_rows=len(rows))
)


def test_numbers_stand_at_the_end_of_their_column_and_words_at_its_beginning() -> None:
    grid = Grid(title="t", columns=THREE, rows=(("a", "1", "2"), ("bbbbbb", "10000", "3")))
    assert lines(grid, 80) == ["name     much  few", "a           1    2", "bbbbbb  10000    3"]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (18, ["name     much  few", "bbbbbb  10000    3"]),
        (17, ["name    few", "bbbbbb    3"]),
        (10, ["name", "bbbbbb"]),
        (4, ["name", "bbb…"]),
        (1, ["…", "…"]),
        (0, ["", ""]),
    ],
)
def test_where_there_is_no_room_columns_of_high_rank_go_first_and_then_letters(width: int, shown: list[str]) -> None:
    assert lines(Grid(title="t", columns=THREE, rows=(("bbbbbb", "10000", "3"),)), width) == shown


def test_a_wide_character_takes_two_cells() -> None:
    grid = Grid(title="t", columns=THREE, rows=(("日本", "1", "2"), ("abcd", "1", "2")))
    assert {cell_len(line) for line in lines(grid, 80)[1:]} == {len("abcd     1    2") + 0}


@given(grids, st.integers(0, 60))
def test_every_row_is_one_line_and_none_is_wider_than_the_terminal(grid: Grid, width: int) -> None:
    found = lines(grid, width)
    assert len(found) == len(grid.rows) + 1
    assert all(cell_len(line) <= width and "\n" not in line for line in found)


@given(st.text(max_size=40), st.integers(-1, 40))
def test_a_text_is_cut_to_its_width(text: str, width: int) -> None:
    found = cut(clean(text), width)
    assert cell_len(found) <= max(0, width)
    assert cell_len(clean(text)) > width or found == clean(text)


@given(st.text())
def test_no_text_moves_the_cursor(text: str) -> None:
    assert all(ord(each) >= 0x20 and not 0x7F <= ord(each) < 0xA0 for each in clean(text))


def test_names_of_any_script_stay_as_they_are_and_escapes_do_not() -> None:
    assert clean("zürich 日本 नमस्ते") == "zürich 日本 नमस्ते"
    assert clean("a\x1b[2Jb\u202ec\n") == "a?[2Jb?c?"


@given(st.lists(st.integers(0, 50), max_size=6), st.integers(-3, 120))
def test_rows_are_shared_out_up_to_the_room_and_nobody_gets_more_than_it_wants(wanted: list[int], room: int) -> None:
    given_rows = shared_rows(wanted, room)
    assert all(0 <= got <= want for got, want in zip(given_rows, wanted, strict=True))
    assert sum(given_rows) == min(sum(wanted), max(0, room))


@given(st.lists(st.integers(0, 50), min_size=2, max_size=6), st.integers(12, 120))
def test_a_table_that_gets_less_than_it_wants_gets_about_as_much_as_any(wanted: list[int], room: int) -> None:
    given_rows = shared_rows(wanted, room)
    short = [got for got, want in zip(given_rows, wanted, strict=True) if got < want]
    assert not short or min(short) >= max(given_rows) - len(wanted)
