"""``axon chat`` without a terminal, against a server that only records."""

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.console.program import Axon


class Recorded(BaseHTTPRequestHandler):
    """A server that answers every chat with how many messages it was sent."""

    asked: ClassVar[list[Any]] = []
    stopped: ClassVar[list[str]] = []
    hung_up: ClassVar[threading.Event] = threading.Event()

    def do_GET(self) -> None:
        self._answer(200, json.dumps({"data": [{"id": "small"}, {"id": "large"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer good":
            self._answer(401, json.dumps({"error": {"message": "no"}}))
            return
        self.asked.append(body)
        if "slow" in body["messages"][-1]["content"]:
            self._answer(200, 'data: {"choices": [{"delta": {"content": "well"}}]}\n\n')
            self.hung_up.wait(30)
            return
        if "fail" in body["messages"][-1]["content"]:
            self._answer(400, json.dumps({"error": {"message": "The prompt is too long."}}))
            return
        words = [body["model"], " heard ", str(len(body["messages"]))]
        chunks = [{"choices": [{"delta": {"content": word}}]} for word in words]
        self._answer(200, "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n")

    def do_DELETE(self) -> None:
        self.stopped.append(self.path)
        self._answer(200, json.dumps({"status": "cancelled"}))

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("x-axon-stream", f"chatcmpl-{len(self.asked)}")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server_url() -> Iterator[str]:
    Recorded.asked.clear()
    Recorded.stopped.clear()
    Recorded.hung_up.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorded) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Recorded.hung_up.set()
        server.shutdown()
        thread.join()


def test_chat_asks_piped_lines_one_after_the_other_and_keeps_the_conversation(axon: Axon, server_url: str) -> None:
    ran = axon("chat", "--url", server_url, "--key", "good", "--system", "Be brief.", stdin="one\n\ntwo\n")
    assert (ran.stdout, ran.returncode) == ("small heard 2\nsmall heard 4\n", 0)
    assert [message["role"] for message in Recorded.asked[1]["messages"]] == ["system", "user", "assistant", "user"]


def test_chat_knows_its_commands(axon: Axon, server_url: str) -> None:
    lines = "one\n/model\n/model large\n/reset\ntwo\n/nonsense\n/model none\n/quit\nthree\n"
    ran = axon("chat", stdin=lines, AXON_URL=f"{server_url}/v1", AXON_API_KEY="good")
    assert ran.stdout.splitlines() == [
        "small heard 1",
        "* small",
        "  large",
        "Talking to large.",
        "Forgotten.",
        "large heard 1",
        "/nonsense is no command; /help lists them.",
    ]
    assert "it has: small, large" in ran.stderr


def test_chat_takes_the_development_key_and_goes_on_after_a_refusal(
    axon: Axon, server_url: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dev-key").write_text("good\n")
    ran = axon("chat", "--url", server_url, stdin="fail\nthen\n")
    assert (ran.stdout, ran.returncode) == ("small heard 1\n", 1)
    assert ran.stderr == "axon: The prompt is too long.\n"


def test_chat_with_a_wrong_key_says_where_to_get_one(axon: Axon, server_url: str) -> None:
    ran = axon("chat", "--url", server_url, "--key", "bad", stdin="hello\n")
    assert ran.returncode == 1
    assert "axon keys create" in ran.stderr


def test_ctrl_c_stops_the_answer_and_not_the_chat(axon: Axon, server_url: str, tmp_path: Path) -> None:
    with axon.on_a_terminal("chat", "--url", server_url, "--key", "good") as typed:
        typed.wait_for("> ")
        typed.type("be slow\n")
        typed.wait_for("well")
        typed.process.send_signal(signal.SIGINT)
        typed.wait_for("(stopped)")
        assert Recorded.stopped == ["/v1/streams/chatcmpl-1"]
        typed.wait_for("> ")
        typed.type("next\n")
        typed.wait_for("small heard 3")
        typed.wait_for("> ")
        typed.type("\x04")
        assert typed.process.wait(timeout=60) == 0
    history = tmp_path / "data" / "chat-history"
    assert "be slow" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
