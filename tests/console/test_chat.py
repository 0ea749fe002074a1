"""A chat at a terminal: whole words at the edge, a note where an answer was cut, no typing inside an answer."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from axon.console.chat import Wrapped
from tests.console.program import Axon


def wrapped(*pieces: str, columns: int = 10) -> str:
    """What stands on the screen, without the blanks at a line's end, which nobody sees."""
    lines, screen = Wrapped(columns), ""
    for piece in pieces:
        for part in re.split(r"(\x1b\[\d+D\x1b\[K)", lines.feed(piece)):
            erased = re.fullmatch(r"\x1b\[(\d+)D\x1b\[K", part)
            screen = screen[: -int(erased[1])] if erased else screen + part
    return re.sub(r" +\n", "\n", screen)


def test_words_move_to_the_next_line_whole() -> None:
    assert wrapped("one two three four") == "one two\nthree four"
    assert wrapped("one t", "wo th", "ree", " four") == "one two\nthree four"
    assert wrapped("1234567890 2") == "1234567890\n2"


def test_every_piece_is_printed_when_it_comes() -> None:
    lines = Wrapped(10)
    assert [lines.feed(piece) for piece in ("one tw", "o", " ", "t")] == ["one tw", "o", " ", "t"]
    assert lines.feed("hree") == "h\x1b[2D\x1b[K\nthree"


def test_line_ends_and_indents_of_the_answer_stay() -> None:
    assert wrapped("a:\n\n    b c\n", columns=10) == "a:\n\n    b c\n"
    assert wrapped("one two\nthree four", columns=10) == "one two\nthree four"


def test_a_word_that_no_line_holds_is_left_to_the_terminal() -> None:
    assert wrapped("ab 12345678901234 c") == "ab\n12345678901234 c"
    assert wrapped("ab 1234567", "8901", "234", " c") == "ab\n12345678901234 c"


class Cut(BaseHTTPRequestHandler):
    """A server whose answers end at the limit; it answers a slow question when it is told to."""

    go_on: ClassVar[threading.Event] = threading.Event()
    is_short: ClassVar[bool] = False
    """Whether the context has no room for the answers that are asked for by their length."""

    def do_GET(self) -> None:
        self._answer(json.dumps({"data": [{"id": "small"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.is_short and "max_tokens" in body:
            refusal = {"message": "The context is 512 tokens.", "code": "context_length_exceeded"}
            self._answer(json.dumps({"error": refusal}), status=400)
            return
        is_slow = "slow" in body["messages"][-1]["content"]
        reason = "stop" if is_slow else "length"
        words = [({"content": "begin "}, None), ({"content": "end"}, None), ({}, reason)]
        chunks = [{"choices": [{"delta": delta, "finish_reason": why}]} for delta, why in words]
        first, *rest = (f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        self._answer(first)
        if is_slow:
            self.go_on.wait(30)
        self.wfile.write(("".join(rest) + "data: [DONE]\n\n").encode())

    def _answer(self, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server_url() -> Iterator[str]:
    Cut.go_on.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Cut) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Cut.go_on.set()
        server.shutdown()
        thread.join()


def test_an_answer_that_was_cut_says_so_and_how_to_get_more(axon: Axon, server_url: str) -> None:
    ran = axon("chat", "--url", server_url, "--max-tokens", "8", stdin="hello\n")
    assert ran.stdout == "begin end\n"
    assert "cut after 8 tokens" in ran.stderr
    assert "--max-tokens" in ran.stderr


def test_a_model_with_a_short_context_answers_as_long_as_there_is_room(
    axon: Axon, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cut, "is_short", True)
    ran = axon("chat", "--url", server_url, stdin="hello\n")
    assert (ran.returncode, ran.stdout) == (0, "begin end\n")
    assert "context is full; /reset" in ran.stderr
    told = axon("chat", "--url", server_url, "--max-tokens", "1000", stdin="hello\n")
    assert (told.returncode, told.stderr) == (1, "axon: The context is 512 tokens.\n")


def test_what_is_typed_ahead_does_not_stand_in_the_answer_and_is_asked_next(axon: Axon, server_url: str) -> None:
    with axon.on_a_terminal("chat", "--url", server_url) as typed:
        typed.wait_for("> ")
        typed.type("be slow\n")
        typed.wait_for("begin ")
        typed.type("next question\n")
        Cut.go_on.set()
        typed.wait_for("end")
        assert "next question" not in typed.passed, "it was echoed into the answer"
        typed.wait_for("> ")
        typed.wait_for("begin end")
        typed.wait_for("(cut after 1024 tokens")
        typed.wait_for("> ")
        typed.type("\x04")
        assert typed.process.wait(timeout=60) == 0
