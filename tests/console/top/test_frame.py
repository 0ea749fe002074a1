"""The picture: it fits every terminal, says since when a server is silent, and loses nothing on paper."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from axon.console.top.frame import Seen, drawn, picture
from axon.console.top.rates import rates
from axon.console.top.view import View, pressed
from axon.domain.overview import ControlLook, Overview, QueueLook
from tests.console.top.looks import counts, gateway, model, overview, tenant, worker

NOW = 1_700_000_000.0


def look(at: float = 100.0, *, tokens: int = 0, num: int = 2) -> Overview:
    workers = [
        worker(
            f"wörker-{number}",
            at=at,
            running=number % 8,
            answer=tokens,
            zone=f"z{number % 3}",
            draining=number == 1,
            kv=0.5,
            ttft=counts(*[0.1] * tokens),
            gaps=counts(*[0.02] * tokens),
            tenants=(tenant(f"tenant-{number}", number % 8, 0, tokens),),
        )
        for number in range(num)
    ]
    return overview(
        *workers,
        at=at,
        of=gateway(up_s=at, streams=4, sockets=1),
        models=tuple(model(f"日本-{number}") for number in range(num)),
        queues=(QueueLook(model="日本-0", requests=3, tokens=1200.0),),
        control=ControlLook(leader="control-1", age_s=2.0, problem="no room"),
        problems=("the queues: away",),
    )


def seen(num: int = 2) -> Seen:
    after = look(102.0, tokens=40, num=num)
    return Seen(url="http://host:1", look=after, rates=rates(look(num=num), after))


def texts(of: Seen, view: View | None = None, width: int = 200, height: int | None = None) -> list[str]:
    return [line.text for line in picture(of, view or View(), now=NOW, width=width, height=height)]


def test_the_head_tells_of_the_fleet_the_work_the_speed_and_this_gateway() -> None:
    title, fleet, work, speed, here, problem, *_ = texts(seen())
    assert title.startswith("axon top · http://host:1 · axon 1.2 · up 1 min · ")
    assert title.endswith(" · every 2 s")
    assert fleet == (
        "Fleet   1 gateway · 2 workers (1 draining) · 2 models (2 ready) · 2 zones (z0, z1) · "
        "control control-1 2 s ago: no room"
    )
    assert work == "Work    running 1/16 · waiting 3 (1.2k tokens) · KV 50%"
    assert speed.startswith("Speed   out 40 tokens/s · in 0 tokens/s · TTFT ")
    assert speed.count("ms / ") == 2
    assert here.startswith("Here    4 streams, 1 socket · 0 requests/s · 0 refused/s · 0 failed/s · TTFT - / -")
    assert problem == "Not read: the queues: away"


def test_a_server_that_is_silent_is_said_to_be_and_what_was_seen_last_stays() -> None:
    known = seen()
    lines = texts(Seen(url=known.url, look=known.look, rates=known.rates, silent_since=NOW - 75, problem="gone\x1b[2J"))
    assert lines[1].startswith("No answer since ")
    assert lines[1].endswith("(1 min): gone?[2J")
    assert any("wörker-1" in line for line in lines)


def test_before_the_first_answer_there_is_nothing_to_see() -> None:
    assert "Nothing has been seen yet." in texts(Seen(url="http://host:1"))


def test_a_picture_without_a_height_has_everything() -> None:
    lines = texts(seen(300))
    assert sum("wörker-" in line for line in lines) == 300
    assert not any("more" in line for line in lines)


@pytest.mark.parametrize("height", [24, 40])
def test_of_hundreds_of_rows_each_table_shows_some_and_says_how_many_more(height: int) -> None:
    lines = texts(seen(300), height=height)
    assert len(lines) == height
    shown = sum(line.startswith("wörker-") for line in lines)
    assert shown > 0
    assert f"and {300 - shown} more" in lines
    assert lines[-1].endswith("? help · q leave")


def test_help_a_pause_and_a_filter_are_seen() -> None:
    assert any(line.strip().startswith("q  ") for line in texts(seen(), View(shows_help=True)))
    assert texts(seen(), View(is_paused=True))[0].startswith("axon top · PAUSED")
    assert "only text 'ab', model 'x'" in texts(seen(), View(text="ab", model="x"))[-1]
    assert texts(seen(), pressed(pressed(View(), "/"), "ü"))[-1].startswith("text: ü")
    assert "None has passed the filter." in texts(seen(), View(text="ab"))


@given(
    st.integers(0, 9), st.integers(0, 140), st.integers(0, 50), st.booleans(), st.sampled_from(["", "w", "日"]),
    st.booleans(),
)  # fmt: skip
def test_every_picture_fits_its_terminal(
    num: int, width: int, height: int, helps: bool, text: str, is_silent: bool
) -> None:
    known = seen(num)
    shown = Seen(url=known.url, look=known.look, rates=known.rates, silent_since=NOW - 5 if is_silent else None)
    lines = texts(shown, View(shows_help=helps, text=text), width, height)
    assert len(lines) == height
    assert all(cell_len(line) <= width for line in lines)


def test_without_colours_no_escape_is_written() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, no_color=True, color_system=None, width=80)
    console.print(drawn(picture(seen(), View(), now=NOW, width=80, height=24)))
    assert "\x1b[3" not in file.getvalue()
    assert "wörker-1" in file.getvalue()
