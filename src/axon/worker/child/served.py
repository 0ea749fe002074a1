"""What a worker has served: tokens, jobs, and the latencies of the last minute. No I/O; it is told the time."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable

from axon.domain.presence import Service
from axon.worker.child.activity import ActivityCounts
from axon.worker.child.answers import Answers
from axon.worker.child.step_cost import StepCost
from axon.worker.job.running import Running

_WINDOW_S = 60.0
_MOST = 512
"""Latencies that are kept at most."""
_IDLE_S = 1.0
"""A longer time between two steps is a pause without work, or a stall that other signals tell."""
_FORGET_S = 1.0


class Served:
    """``token`` for every token, ``step`` for every step, ``told`` once a second or so."""

    def __init__(self) -> None:
        self.activity = ActivityCounts()
        self._jobs = self._prompt = self._answer = 0
        self._ttfts, self._steps = _Window(), _Window()
        self._stepped_at: float | None = None
        self._kv_use: float | None = None
        self._has_work = False
        self._cost, self._forgot_at = StepCost(), 0.0

    def token(self, tenant: str, *, prompt: int, is_first: bool) -> None:
        """Counts a token of an answer; the first one comes with the prompt tokens that were computed for it."""
        self.activity.token(tenant, prompt=prompt)
        self._answer += 1
        self._prompt += prompt
        self._jobs += is_first

    def vector(self, tenant: str, *, prompt: int) -> None:
        """Counts an input of an embedding model, of so many tokens."""
        self.activity.token(tenant, prompt=prompt, answer=0)
        self._prompt += prompt
        self._jobs += 1

    def began(self, now: float, ttft_s: float) -> None:
        """A request has had its first token so long after it was asked."""
        self._ttfts.add(now, max(0.0, ttft_s))
        self.activity.began(ttft_s)

    def step(
        self, now: float, *, used: int, free: int, streams: int = 0, tokens: int = 0, has_work: bool = True
    ) -> None:
        """Counts a step of the engine, which leaves so many KV blocks used and free. It computed ``tokens``, one for
        each of the streams and the rest of prompts; ``has_work``: another step follows at once."""
        self.activity.step(now, num_tokens=streams, has_work=has_work)
        if self._stepped_at is not None and now - self._stepped_at < _IDLE_S:
            self._steps.add(now, now - self._stepped_at)
            if self._has_work and tokens:
                self._cost.step(now - self._stepped_at, streams=streams, prompt=max(0, tokens - streams))
        self._stepped_at, self._has_work = now, has_work
        self._kv_use = used / (used + free) if used + free else None

    def told(
        self, now: float, *, slots: int = 0, answers: Answers | None = None, running: Iterable[Running] = ()
    ) -> Service:
        """All of it at the monotonic time ``now``, for an engine with so many slots; ``answers`` predicts what the jobs
        take and what is left of those that run."""
        if now - self._forgot_at >= _FORGET_S:
            self._forgot_at = now
            self._cost.forget()
        prefill, decode = self._cost.speeds(slots)
        answers = answers or Answers()
        pending, remaining = answers.left(running, now)
        return Service(
            taken_jobs=answers.taken,
            taken_prompt=round(answers.prompt, 1),
            expected_tokens=round(answers.expected, 1),
            pending_prompt=round(pending, 1),
            remaining_tokens=round(remaining, 1),
            prefill_per_s=prefill and round(prefill, 1),
            decode_per_s=decode and round(decode, 1),
            jobs=self._jobs,
            prompt_tokens=self._prompt,
            answer_tokens=self._answer,
            ttft_s=self._ttfts.p95(now),
            itl_s=self._steps.p95(now),
            kv_use=self._kv_use,
        )


class _Window:
    """The latest values, each with its time. They are kept in order too, because a worker asks ten times a second, and
    to sort them takes ten times as long as all else that it announces."""

    def __init__(self) -> None:
        self._values: deque[tuple[float, float]] = deque()
        self._ordered: list[float] = []

    def add(self, now: float, value: float) -> None:
        if len(self._values) == _MOST:
            self._drop_oldest()
        self._values.append((now, value))
        insort(self._ordered, value)

    def p95(self, now: float) -> float | None:
        while self._values and now - self._values[0][0] > _WINDOW_S:
            self._drop_oldest()
        ordered = self._ordered
        return round(ordered[int(0.95 * (len(ordered) - 1))], 4) if ordered else None

    def _drop_oldest(self) -> None:
        _, value = self._values.popleft()
        del self._ordered[bisect_left(self._ordered, value)]
