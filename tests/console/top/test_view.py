"""Keys: what each does, that typing is typing, and that none breaks anything."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.console.top.view import FASTEST_S, HELP, MAX_TYPED, SLOWEST_S, Field, Section, Sort, View, pressed

NAMED = ["enter", "esc", "tab", "backtab", "backspace", "ctrl-c", "ctrl-d", "ctrl-u", "up", "down"]


def after(*keys: str, view: View | None = None) -> View:
    view = view or View()
    for key in keys:
        view = pressed(view, key)
    return view


@pytest.mark.parametrize(
    ("keys", "changed"),
    [
        (["q"], {"has_ended": True}),
        (["ctrl-c"], {"has_ended": True}),
        (["?"], {"shows_help": True}),
        (["?", "?"], {}),
        (["?", "esc"], {}),
        (["p"], {"is_paused": True}),
        ([" ", " "], {}),
        (["s"], {"sort": Sort.TOKENS}),
        (["S"], {"sort": Sort.NAME}),
        (["s"] * len(Sort), {}),
        (["r"], {"is_reversed": True}),
        (["tab"], {"section": Section.MODELS}),
        (["tab", "backtab"], {}),
        (["backtab"], {"section": Section.QUEUES}),
        (["tab", "tab", "a"], {}),
        (["+"], {"interval_s": 1.0}),
        (["-"], {"interval_s": 4.0}),
        (["+"] * 9, {"interval_s": FASTEST_S}),
        (["-"] * 9, {"interval_s": SLOWEST_S}),
        (["/", "q", "?", "enter"], {"text": "q?"}),
        (["m", "日", "本", "enter"], {"model": "日本"}),
        (["t", "a", "b", "backspace", "enter"], {"tenant": "a"}),
        (["t", "a", "b", "ctrl-u", "c", "enter"], {"tenant": "c"}),
        (["t", "a", "esc"], {}),
        (["/", "a", "enter", "esc"], {}),
        (["/", "a", "ctrl-c"], {"has_ended": True, "typing": Field.TEXT, "typed": "a"}),
        (["x", "up", "", "\x00"], {}),
    ],
)
def test_what_a_key_does(keys: list[str], changed: dict[str, object]) -> None:
    assert after(*keys) == replace(View(), **changed)  # type: ignore[arg-type]


def test_a_filter_is_typed_on_from_what_it_was() -> None:
    view = after("m", view=View(model="llama"))
    assert (view.typing, view.typed) == (Field.MODEL, "llama")
    assert after("x", "enter", view=view).model == "llamax"


@given(st.lists(st.one_of(st.sampled_from(NAMED), st.characters()), max_size=200))
def test_no_keys_break_anything(keys: list[str]) -> None:
    view = after(*keys)
    assert len(view.typed) <= MAX_TYPED
    assert FASTEST_S <= view.interval_s <= SLOWEST_S
    assert view.typing is not None or view.typed == ""


def test_every_key_of_the_help_does_something() -> None:
    keys = [part for names, _ in HELP for part in names.replace(" or ", " ").replace(" / ", " ").split()]
    filtered = View(text="x", section=Section.WORKERS)
    for key in keys:
        assert pressed(filtered, " " if key == "space" else key) != filtered, key
