"""``axon top`` at a real terminal: a person presses keys, sees frames, and has the terminal back as it was."""

import signal

import pytest

from tests.console.program import Axon
from tests.console.top.conftest import Watched

LEFT = "\x1b[?1049l"
"""The terminal shows again what was there before."""
CURSOR = "\x1b[?25h"


def test_keys_change_what_is_seen_and_q_leaves_the_terminal_as_it_was(axon: Axon, watched: Watched) -> None:
    environ = {"TERM": "xterm-256color", "COLUMNS": "60", "LINES": "20"}  # the terminal's own size is what counts
    with axon.on_a_terminal("top", *watched.flags, size=(120, 40), **environ) as typed:
        before = typed.modes
        typed.wait_for("\x1b[?1049h")
        typed.wait_like(r"Speed   out [1-9][0-9.k]* tokens/s")
        typed.wait_like(r"acme +[1-9]")
        assert typed.modes != before
        typed.type("?")
        typed.wait_for("show or leave this help")
        typed.type("?/")
        typed.wait_for("text: ")
        typed.type("glob\r")
        typed.wait_for("only text 'glob'")
        typed.wait_for("globex")
        typed.wait_for("? help")
        assert "acme" not in typed.passed
        typed.type("\x1bs")
        typed.wait_for("sorted by tokens/s · ? help")
        typed.type("\t\t")
        typed.wait_for("acme")
        typed.type("p")
        typed.wait_for("PAUSED")
        typed.type("p")
        typed.resize(30, 8)
        typed.wait_like(r"axon top · http://[0-9.:]{1,13}…")
        typed.type("q")
        assert typed.process.wait(60) == 0
        typed.wait_for(LEFT)
        typed.wait_for(CURSOR)
        assert typed.modes == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_terminal_as_it_was(axon: Axon, watched: Watched, number: signal.Signals) -> None:
    with axon.on_a_terminal("top", *watched.flags, size=(80, 24), TERM="xterm", NO_COLOR="1") as typed:
        before = typed.modes
        typed.wait_for("Speed   out")
        typed.process.send_signal(number)
        assert typed.process.wait(60) == 0
        typed.wait_for(LEFT)
        assert "\x1b[36" not in typed.passed
        typed.wait_for(CURSOR)
        assert typed.modes == before


def test_it_goes_on_when_the_server_is_started_again(axon: Axon, watched: Watched) -> None:
    with axon.on_a_terminal("top", *watched.flags, size=(120, 30), TERM="xterm") as typed:
        typed.wait_for("Speed   out")
        assert watched.server.stop() == 0
        typed.wait_for("No answer since")
        watched.server.start_again()
        typed.wait_like(r"up [0-9]+ s[^\n]*\n[^\n]*Fleet   1 gateway")  # no line between them says that it is silent
        typed.wait_like(r"Speed   out [1-9]")
        typed.type("q")
        assert typed.process.wait(60) == 0
