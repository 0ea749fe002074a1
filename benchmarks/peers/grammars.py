"""llama.cpp's grammar sampling, asked over its own HTTP server: tokens/s of streams with a schema or without.

Answers come whole, so that no client takes processor time while they are made, and the rate is by the server's own
clock: all tokens but each stream's first, over the longest time that a stream generated for.
"""

import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers import engines
from benchmarks.peers.server import Server, running

_TIMEOUT_S = 600.0


class Llama:
    """A llama.cpp server that runs."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def rate(self, prompts: Sequence[Sequence[int]], num_tokens: int, schema: Mapping[str, Any] | None) -> float:
        """Tokens/s of one stream for each prompt, all at once."""
        self._server.resume()
        try:
            with ThreadPoolExecutor(len(prompts)) as threads:
                asks = [self._ask(prompt, num_tokens, schema, seed) for seed, prompt in enumerate(prompts)]
                timings = list(threads.map(self._timings, asks))
        finally:
            self._server.pause()
        numbers = [each["predicted_n"] for each in timings]
        assert numbers == [num_tokens] * len(prompts), f"an answer ended by itself: {numbers}"
        longest_s: float = max(each["predicted_ms"] for each in timings) / 1000
        return (num_tokens - 1) * len(prompts) / longest_s

    @staticmethod
    def _ask(prompt: Sequence[int], num_tokens: int, schema: Mapping[str, Any] | None, seed: int) -> dict[str, Any]:
        ask = {"prompt": list(prompt), "n_predict": num_tokens, "temperature": 1.0, "seed": seed, "ignore_eos": True}
        return {**ask, "cache_prompt": False} | ({"json_schema": dict(schema)} if schema else {})

    def _timings(self, ask: Mapping[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._server.port}/completion",
            json.dumps(ask).encode(),
            {"content-type": "application/json", "connection": "close"},
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
            timings: dict[str, Any] = json.load(reply)["timings"]
            return timings


def xllamacpp(folder: Path, gguf: Path) -> engines.Engine:
    """llama.cpp as the wheel ``xllamacpp`` has it, unpacked in this folder."""
    program = engines.ROOT / "benchmarks" / "peers" / "xllamacpp_server.py"
    return engines.Engine(
        name="llama.cpp (xllamacpp)",
        version="wheel",
        command=(
            *(sys.executable, str(program), "--model", str(gguf), "--port", "{port}"),
            *("--threads", str(engines.NUM_THREADS), "--streams", str(engines.MAX_STREAMS)),
            *("--context", str(engines.CONTEXT)),
        ),
        environment={"PYTHONPATH": str(folder)},
    )


@contextmanager
def llamas(xllamacpp_folder: Path | None, gguf: Path, folder: Path) -> Iterator[dict[str, Llama]]:
    """Every llama.cpp that is installed under .peers/, and the wheel's if its folder is given, each stopped (SIGSTOP)
    while it is not asked."""
    peers = [
        peer
        for peer in engines.installed_peers(engines.read_manifest())
        if peer.name.startswith("llama.cpp") and not peer.speculates
    ]
    if xllamacpp_folder is not None:
        peers.append(xllamacpp(xllamacpp_folder, gguf))
    with ExitStack() as stack:
        found = {}
        for peer in peers:
            server = stack.enter_context(running(peer.server(folder)))
            server.wait()
            server.pause()
            found[peer.name] = Llama(server)
        yield found
