"""A thin server of embeddings around another library, run by the python of its own virtual environment.

    python embedding_server.py --port N --backend sentence-transformers --model FOLDER --threads 2
    python embedding_server.py --port N --backend onnxruntime --model FOLDER --threads 2 --weights model.onnx
    python embedding_server.py --port N --backend echo

Only what the benchmark asks for: POST /v1/embeddings with ``encoding_format: base64``, over connections that stay open,
and GET /health. Needs nothing but the standard library and the one library; imports nothing of this repository, which
is not installed there.

Inputs that wait while a batch is computed are the next batch, at most 32: nobody waits for others to come.
"""

import argparse
import asyncio
import base64
import importlib
import json
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_BATCH = 32
NORMAL_LENGTH = 1e-12


@dataclass(frozen=True)
class Ask:
    """Texts, and where their vectors go."""

    texts: list[str]
    send: Callable[[list[bytes]], None]


class Echo:
    """Vectors of the texts' lengths."""

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        return [len(text).to_bytes(4, "little") * 8 for text in texts]


class SentenceTransformers:
    """The library itself, with its own batching by length."""

    def __init__(self, model: str, threads: int) -> None:
        importlib.import_module("torch").set_num_threads(threads)
        self._model = importlib.import_module("sentence_transformers").SentenceTransformer(model, device="cpu")

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        rows: Any = self._model.encode(list(texts), batch_size=MAX_BATCH, show_progress_bar=False)
        return [row.astype("<f4").tobytes() for row in rows]


class OnnxRuntime:
    """The model's graph with the fast tokenizer; mean pooling and scaling to length 1 in numpy."""

    def __init__(self, model: str, threads: int, weights: str) -> None:
        ort: Any = importlib.import_module("onnxruntime")
        self._np: Any = importlib.import_module("numpy")
        self._tokenizer: Any = importlib.import_module("tokenizers").Tokenizer.from_file(
            str(Path(model) / "tokenizer.json")
        )
        self._tokenizer.enable_padding()
        self._tokenizer.enable_truncation(256)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self._session = ort.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        self._names = {each.name for each in self._session.get_inputs()}

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        np = self._np
        encoded = self._tokenizer.encode_batch(list(texts))
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        ids = np.array([each.ids for each in encoded], np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: given[name] for name in self._names})[0]
        weights = mask[:, :, None].astype(np.float32)
        pooled = (hidden * weights).sum(1) / weights.sum(1)
        pooled /= np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), NORMAL_LENGTH)
        return [row.astype("<f4").tobytes() for row in pooled]


def compute(backend: Any, asks: "queue.Queue[Ask]") -> None:
    """Takes what waits, batch by batch."""
    while True:
        batch = [asks.get()]
        while not asks.empty() and sum(len(ask.texts) for ask in batch) < MAX_BATCH:
            batch.append(asks.get())
        vectors = backend.encode([text for ask in batch for text in ask.texts])
        for ask in batch:
            ask.send(vectors[: len(ask.texts)])
            vectors = vectors[len(ask.texts) :]


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asks: "queue.Queue[Ask]") -> None:
    """One connection, one request after the other."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            answer = b"{}" if head.startswith("GET") else await answered(body, asks)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
            )
            writer.write(answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def answered(body: bytes, asks: "queue.Queue[Ask]") -> bytes:
    """The body of the answer, once the vectors are there."""
    asked = json.loads(body)
    texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[bytes]] = loop.create_future()

    def send(vectors: list[bytes]) -> None:
        loop.call_soon_threadsafe(found.set_result, vectors)

    asks.put(Ask(texts, send))
    data = [
        {"object": "embedding", "index": index, "embedding": base64.b64encode(vector).decode()}
        for index, vector in enumerate(await found)
    ]
    return json.dumps({"object": "list", "data": data, "model": asked["model"]}).encode()


async def serve(port: int, asks: "queue.Queue[Ask]") -> None:
    server = await asyncio.start_server(lambda reader, writer: handle(reader, writer, asks), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backend", choices=("sentence-transformers", "onnxruntime", "echo"), required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--weights", default="")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    backend: Any = Echo()
    if options.backend == "sentence-transformers":
        backend = SentenceTransformers(options.model, options.threads)
    elif options.backend == "onnxruntime":
        backend = OnnxRuntime(options.model, options.threads, options.weights)
    asks: queue.Queue[Ask] = queue.Queue()
    threading.Thread(target=compute, args=(backend, asks), daemon=True).start()
    asyncio.run(serve(options.port, asks))


if __name__ == "__main__":
    main()
