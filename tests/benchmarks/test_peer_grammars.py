"""llama.cpp's grammar as the benchmark asks for it, on a server that only says how long it took."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.measures.constrained import schema
from benchmarks.peers.grammars import Llama, xllamacpp


class Answering(BaseHTTPRequestHandler):
    """Answers as llama.cpp's server does; a stream takes longer the higher its seed is."""

    asked: list[dict[str, Any]]
    num_tokens: int

    def do_POST(self) -> None:
        ask = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(ask)
        body = json.dumps({"timings": {"predicted_n": self.num_tokens, "predicted_ms": 1000 + ask["seed"]}}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def answering() -> Iterator[tuple[Any, type[Answering]]]:
    """A server as the benchmark holds it, and what it does."""
    kind = type("Kind", (Answering,), {"asked": [], "num_tokens": 11})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        signals: list[str] = []
        yield (
            SimpleNamespace(
                port=http.server_port,
                pause=lambda: signals.append("pause"),
                resume=lambda: signals.append("resume"),
                signals=signals,
            ),
            kind,
        )
        http.shutdown()
        thread.join()


def test_the_rate_is_of_all_streams_over_the_slowest_of_them(answering: tuple[Any, type[Answering]]) -> None:
    server, kind = answering
    assert Llama(server).rate([[1, 2]] * 3, 11, None) == pytest.approx(30 / 1.002)
    assert server.signals == ["resume", "pause"]
    assert sorted(ask["seed"] for ask in kind.asked) == [0, 1, 2]
    assert all("json_schema" not in ask and ask["ignore_eos"] and ask["n_predict"] == 11 for ask in kind.asked)


def test_the_schema_is_the_one_that_axon_gets(answering: tuple[Any, type[Answering]]) -> None:
    server, kind = answering
    Llama(server).rate([[1]], 11, schema())
    assert kind.asked[0]["json_schema"] == schema()


def test_an_answer_that_ended_by_itself_counts_for_nothing(answering: tuple[Any, type[Answering]]) -> None:
    server, _ = answering
    with pytest.raises(AssertionError, match="ended by itself"):
        Llama(server).rate([[1]], 12, None)
    assert server.signals == ["resume", "pause"]


def test_the_wheel_is_started_with_the_same_file_and_threads(tmp_path: Path) -> None:
    peer = xllamacpp(tmp_path, Path("/models/small.gguf"))
    assert peer.environment == {"PYTHONPATH": str(tmp_path)}
    assert "/models/small.gguf" in peer.command
    assert peer.command[peer.command.index("--threads") + 1] == "2"
