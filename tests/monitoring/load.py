"""Steady load on a fleet: chats one after the other, several at a time, half of them streams. Judges nothing."""

import asyncio
import threading
from itertools import count
from types import TracebackType

import httpx

_SENTENCE = "Say this again. "
_TIERS = ("default", "priority", "flex")


class Load:
    """``width`` requests at a time, each followed by a pause; ``with`` begins and ends it. Answers may be errors."""

    def __init__(self, url: str, key: str, *, model: str = "echo", width: int = 2, pause_s: float = 0.25) -> None:
        self.width, self.pause_s = width, pause_s
        self.repeats = 1
        """How often a prompt says its sentence, and the answer after it."""
        self.num_sent = 0
        self._url, self._key, self._model = url, key, model
        self._numbers = count()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="load", daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join(60)

    async def _run(self) -> None:
        """Keeps as many tasks as ``width`` says; it may be changed while they run."""
        headers = {"Authorization": f"Bearer {self._key}"}
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=self._url, headers=headers, timeout=60, limits=limits) as http:
            running: set[asyncio.Task[None]] = set()
            while not self._ends.is_set():
                running = {task for task in running if not task.done()}
                running |= {asyncio.create_task(self._ask(http)) for _ in range(self.width - len(running))}
                await asyncio.sleep(0.05)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _ask(self, http: httpx.AsyncClient) -> None:
        number = next(self._numbers)
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": f"{number}: {_SENTENCE * self.repeats}"}],
            "stream": number % 2 == 0,
            "service_tier": _TIERS[number % len(_TIERS)],
            "max_tokens": len(_SENTENCE) * self.repeats,
        }
        try:
            async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
                await answer.aread()
        except httpx.HTTPError:
            pass  # a fault is going on
        self.num_sent += 1
        await asyncio.sleep(self.pause_s)
