"""Predicted work of a worker's jobs, by each route's and tenant's own lengths. No I/O; it is told the time."""

from collections.abc import Iterable

from axon.domain.job import Job
from axon.domain.scaling.lengths import Lengths
from axon.worker.job.running import Running

_GAIN = 0.02
_EVERY_S = 1.0
"""The sum over all that runs is computed at most this often."""


class Answers:
    """``took`` for every job, ``began`` and ``ended`` for every choice; ``left`` when it is asked."""

    def __init__(self) -> None:
        self.taken = 0
        """Choices of all jobs that were taken for the first time."""
        self.prompt = self.expected = 0.0
        """Predicted tokens of their prompts that no cache holds, and of their answers."""
        self._lengths = Lengths()
        self._computed = 1.0
        """Part of the prompts' tokens that is not found in the cache (exponential moving average)."""
        self._both = (0.0, 0.0)
        self._computed_at = float("-inf")

    def took(self, job: Job) -> None:
        """The job was taken, and nobody had taken it before."""
        self.taken += job.choices
        self.prompt += self._computed * job.num_prompt_tokens
        self.expected += job.choices * min(self._lengths.mean(_key(job)), job.sampling.max_tokens)

    def began(self, *, prefilled: int, cached: int) -> None:
        """A choice has had its first token, for which so many tokens of the prompt were computed and found."""
        if prefilled + cached:
            self._computed += _GAIN * (prefilled / (prefilled + cached) - self._computed)

    def ended(self, job: Job, tokens: int) -> None:
        """A choice of the job has ended after so many tokens."""
        self._lengths.observe(_key(job), tokens)

    def left(self, running: Iterable[Running], now: float) -> tuple[float, float]:
        """Predicted tokens that the choices which run have left, of prompts and of answers; at most a second old."""
        if now - self._computed_at >= _EVERY_S:
            self._computed_at = now
            each = [self._left(one) for one in running if one.terminal is None]
            self._both = sum(prompt for prompt, _ in each), sum(answer for _, answer in each)
        return self._both

    def _left(self, running: Running) -> tuple[float, float]:
        key, most = _key(running.job), running.job.sampling.max_tokens
        going = [choice for choice in running.choices if not choice.reason]
        pending = sum(len(choice.prompt_ids) for choice in going if not choice.token_ids)
        so_far = [len(choice.token_ids) for choice in going]
        answer = sum(max(0.0, min(self._lengths.remaining(key, num), most - num)) for num in so_far)
        return self._computed * pending, answer


def _key(job: Job) -> tuple[str, str]:
    """Route and tenant: the beginning of a job's id says by which route it came."""
    return job.id.replace("_", "-").partition("-")[0], job.tenant
