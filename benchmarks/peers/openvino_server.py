"""A thin OpenAI-style server around OpenVINO GenAI, run by the python of its own virtual environment.

    python openvino_server.py --port N --model FILE.gguf --threads 2 --backend paged
    python openvino_server.py --port N --echo           without OpenVINO: repeats the prompt's words

Only what the benchmark asks for: POST /v1/completions with a stream, greedy or with a temperature, with or without the
model's own end, and GET /health. Needs nothing but the standard library and OpenVINO; imports nothing of this
repository, which is not installed there.

``paged`` is continuous batching. OpenVINO has it on x86-64 and on ARM with SVE only; elsewhere ``stateful`` runs one
request after the other, which is all that its streaming interface offers there.
"""

import argparse
import asyncio
import importlib
import json
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PAGED_BLOCKS_GB = 1
MAX_BATCHED_TOKENS = 512


@dataclass(frozen=True)
class Piece:
    """Part of an answer: some text of so many tokens; the last one says why the answer ended."""

    text: str = ""
    num_tokens: int = 0
    finish: str = ""
    """``stop`` or ``length`` in the last piece."""
    num_prompt_tokens: int = 0
    """In the last piece."""


@dataclass(frozen=True)
class Ask:
    """A completion, and where its pieces go."""

    prompt: str
    num_tokens: int
    send: Callable[[Piece], None]
    temperature: float = 0.0
    seed: int = 0
    ends_itself: bool = False

    def finish(self, num_tokens: int) -> str:
        """Why an answer of so many tokens has ended."""
        return "length" if num_tokens >= self.num_tokens else "stop"


class Echo:
    """Repeats the prompt's words."""

    def run(self, asks: "queue.Queue[Ask]") -> None:
        while True:
            ask = asks.get()
            words = ask.prompt.split()
            num_tokens = min(ask.num_tokens, len(words)) if ask.ends_itself else ask.num_tokens
            for index in range(num_tokens):
                ask.send(Piece(" " + words[index % len(words)], 1))
            ask.send(Piece(finish=ask.finish(num_tokens), num_prompt_tokens=len(words)))


class Stateful:
    """One request after the other."""

    def __init__(self, model: str, threads: int) -> None:
        self._genai = importlib.import_module("openvino_genai")
        # Half precision has no matrix product for compressed weights on ARM without SVE; float32 has one everywhere.
        options = {
            "INFERENCE_NUM_THREADS": threads,
            "ATTENTION_BACKEND": "SDPA",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self._pipeline = self._genai.LLMPipeline(model, "CPU", **options)
        self._end_id = self._pipeline.get_tokenizer().get_eos_token_id()

    def run(self, asks: "queue.Queue[Ask]") -> None:
        while True:
            ask = asks.get()
            result = self._pipeline.generate([ask.prompt], _config(self._genai, ask, self._end_id), _streamer(ask))
            # A piece of text may hold several tokens: only the pipeline knows how many.
            measured = result.perf_metrics
            num_tokens = measured.get_num_generated_tokens()
            last = Piece("", num_tokens, ask.finish(num_tokens), measured.get_num_input_tokens())
            ask.send(last)


class Paged:
    """All requests in one batch, which grows and shrinks from step to step."""

    def __init__(self, model: str, threads: int) -> None:
        self._genai = importlib.import_module("openvino_genai")
        scheduler = self._genai.SchedulerConfig()
        scheduler.cache_size = PAGED_BLOCKS_GB
        scheduler.max_num_batched_tokens = MAX_BATCHED_TOKENS
        scheduler.enable_prefix_caching = False
        options = {"INFERENCE_NUM_THREADS": threads}
        self._pipeline = self._genai.ContinuousBatchingPipeline(model, scheduler, "CPU", options)
        self._tokenizer = self._pipeline.get_tokenizer()
        self._end_id = self._tokenizer.get_eos_token_id()

    def run(self, asks: "queue.Queue[Ask]") -> None:
        running: list[Running] = []
        number = 0
        while True:
            while not running or not asks.empty():
                ask = asks.get()
                input_ids = self._tokenizer.encode(ask.prompt).input_ids
                handle = self._pipeline.add_request(number, input_ids, _config(self._genai, ask, self._end_id))
                running.append(Running(handle, ask, input_ids.shape[1]))
                number += 1
            self._pipeline.step()
            running = [each for each in running if not self._pass_on(each)]

    def _pass_on(self, running: "Running") -> bool:
        """Sends what is new; returns whether the answer has ended."""
        ids = running.token_ids
        has_ended = running.handle.get_status() != self._genai.GenerationStatus.RUNNING  # before the last is read
        num_before = len(ids)
        while running.handle.can_read():
            for output in running.handle.read().values():
                ids += output.generated_ids
        if len(ids) > num_before:
            # A few tokens before it are enough to know the newest one's text.
            start = max(0, num_before - 4)
            old = self._tokenizer.decode(ids[start:num_before]) if num_before else ""
            running.ask.send(Piece(self._tokenizer.decode(ids[start:])[len(old) :], len(ids) - num_before))
        if has_ended or len(ids) >= running.ask.num_tokens:
            running.ask.send(Piece("", 0, running.ask.finish(len(ids)), running.num_prompt_tokens))
            return True
        return False


@dataclass
class Running:
    """A request in the batch."""

    handle: Any
    ask: Ask
    num_prompt_tokens: int
    token_ids: list[int] = field(default_factory=list)


def _streamer(ask: Ask) -> Callable[[str], bool]:
    def take(text: str) -> bool:
        ask.send(Piece(text))
        return False

    return take


def _config(genai: Any, ask: Ask, end_id: int) -> Any:
    """How the answer is drawn; without top-k, top-p and penalties, as the other servers are asked to."""
    config = genai.GenerationConfig()
    config.max_new_tokens = ask.num_tokens
    config.ignore_eos = not ask.ends_itself
    config.do_sample = ask.temperature > 0
    config.apply_chat_template = False
    if ask.temperature:
        config.temperature = ask.temperature
        config.rng_seed = ask.seed
    if ask.ends_itself:
        config.set_eos_token_id(end_id)
    return config


async def serve(port: int, asks: "queue.Queue[Ask]") -> None:
    """Speaks HTTP until the process is ended."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _answer(reader, writer, asks)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", port, limit=1 << 22)
    async with server:
        await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asks: "queue.Queue[Ask]") -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    if head[0].startswith("GET /health "):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        return
    if not head[0].startswith("POST /v1/completions "):
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        return
    lengths = [line.partition(":")[2] for line in head if line.lower().startswith("content-length:")]
    body = json.loads(await reader.readexactly(int(lengths[0])))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Piece]()

    def send(piece: Piece) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    asks.put(to_ask(body, send))
    counted, finish = 0, ""
    while not finish:
        piece = await pieces.get()
        counted, finish = counted + piece.num_tokens, piece.finish
        if piece.text or finish:
            _write(writer, {"choices": [{"index": 0, "text": piece.text, "finish_reason": finish or None}]})
    usage = {"prompt_tokens": piece.num_prompt_tokens, "completion_tokens": counted}
    _write(writer, {"choices": [], "usage": usage})
    writer.write(b"data: [DONE]\n\n")
    await writer.drain()


def to_ask(body: dict[str, Any], send: Callable[[Piece], None]) -> Ask:
    """A request's body as an Ask."""
    return Ask(
        prompt=body["prompt"],
        num_tokens=body["max_tokens"],
        send=send,
        temperature=body.get("temperature", 0.0),
        seed=body.get("seed", 0),
        ends_itself=not body.get("ignore_eos", False),
    )


def _write(writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
    writer.write(b"data: " + json.dumps(event).encode() + b"\n\n")


def main() -> None:
    """Loads the model, then serves."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backend", choices=("paged", "stateful"), default="paged")
    parser.add_argument("--echo", action="store_true")
    parser.add_argument("--check", action="store_true", help="only load the model and answer once")
    options = parser.parse_args()
    pipeline: Echo | Stateful | Paged
    if options.echo:
        pipeline = Echo()
    else:
        pipeline = (Paged if options.backend == "paged" else Stateful)(options.model, options.threads)
    asks: queue.Queue[Ask] = queue.Queue()
    threading.Thread(target=pipeline.run, args=(asks,), daemon=True).start()
    if options.check:
        ended = threading.Event()
        asks.put(Ask("The capital of France is", 4, lambda piece: ended.set() if piece.finish else None))
        sys.exit(0 if ended.wait(120) else "no answer within two minutes")
    asyncio.run(serve(options.port, asks))


if __name__ == "__main__":
    main()
