"""Conversations that run on while a fleet changes its versions: each notes by which version it was answered.

Clients are OpenAI's own. Half of the conversations are completions that name their session, half are chains of
responses, whose history the fleet keeps.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
import openai

from tests.fleet.versions import MODEL, SHIFTS, rotated

_MAX_TOKENS = 64


@dataclass
class Talk:
    """One conversation: a session of turns, each answered by one version."""

    name: str
    model: str = MODEL
    is_chain: bool = False
    """Whether it is a chain of responses."""
    began: float = field(default_factory=time.monotonic)
    heard: float = 0.0
    """Monotonic time of the first answer."""
    said: list[str] = field(default_factory=list)
    """The version of each answer, by its tokens."""
    moves: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _previous: str = ""
    _told: str = ""
    """What the chain's prompts begin with."""

    def turn(self, api: openai.OpenAI, number: int) -> None:
        """One more turn; its tokens and its label must name the same version."""
        try:
            prompt, text, label, more = (self._respond if self.is_chain else self._complete)(api, number)
        except openai.OpenAIError as error:
            self.problems.append(f"{self.name} turn {number}: {error!r}")
            return
        self.heard = self.heard or time.monotonic()
        versions = [each for each, shift in SHIFTS.items() if rotated(prompt, shift)[:_MAX_TOKENS] == text]
        if versions != [label] or label.partition("@")[0] != self.model:
            self.problems.append(f"{self.name} turn {number}: {text!r} is labelled {label}")
        self.said.append(label)
        if moved := more.get("moved"):
            self.moves.append(moved)

    @property
    def is_kept(self) -> bool:
        """Whether one version answered from the first turn to the last, but for moves that were told."""
        changes = [(old, new) for old, new in zip(self.said, self.said[1:], strict=False) if old != new]
        return changes == [(move["from"], move["to"]) for move in self.moves]

    def _complete(self, api: openai.OpenAI, number: int) -> tuple[str, str, str, dict[str, Any]]:
        prompt = f"{self.name} turn {number}."
        headers = {"x-axon-session": self.name}
        found = api.completions.create(model=self.model, prompt=prompt, max_tokens=_MAX_TOKENS, extra_headers=headers)
        return prompt, found.choices[0].text, found.system_fingerprint or "", (found.model_extra or {}).get("axon", {})

    def _respond(self, api: openai.OpenAI, number: int) -> tuple[str, str, str, dict[str, Any]]:
        said = f"{self.name} turn {number}."
        found = api.responses.create(
            model=self.model,
            input=said,
            max_output_tokens=_MAX_TOKENS,
            previous_response_id=self._previous or openai.omit,
        )
        prompt = f"{self._told}user: {said}\nassistant:"
        self._previous, self._told = found.id, f"{prompt} {found.output_text}\n"
        more = (found.model_extra or {})["axon"]
        return prompt, found.output_text, more["version"], more


class Talks:
    """Conversations in threads until ``stop``: ``width`` at a time, each of ``length`` turns, then another one.

    The turns go round the ``urls``. A problem is what a client finds that asks again ``retries`` times, by its own
    rules. Each fifth conversation asks the last of several ``models``.
    """

    def __init__(
        self,
        urls: Sequence[str],
        key: str,
        *,
        width: int,
        length: int,
        pause_s: float = 0.0,
        retries: int = 0,
        models: Sequence[str] = (MODEL,),
        name: str = "session",
        timeout_s: float = 60.0,
    ) -> None:
        self.talks: list[Talk] = []
        self.asked_again: Counter[str] = Counter()
        """Answers that made a client ask again, by their status."""
        self._length, self._pause_s, self._models, self._name = length, pause_s, models, name
        self._apis = [self._client(url, key, retries, timeout_s) for url in urls]
        self._numbers, self._stopping = count(), threading.Event()
        self._threads = [threading.Thread(target=self._talk) for _ in range(width)]

    def __enter__(self) -> "Talks":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Lets every conversation end its present turn."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        for api in self._apis:
            api.close()

    @property
    def num_turns(self) -> int:
        return sum(len(talk.said) for talk in self.talks)

    @property
    def problems(self) -> list[str]:
        return [problem for talk in self.talks for problem in talk.problems]

    def first_versions(self, since: int = 0, where: Callable[[Talk], bool] = lambda talk: True) -> Counter[str]:
        """The versions on which the conversations from this number on began."""
        return Counter(talk.said[0] for talk in self.talks[since:] if talk.said and where(talk))

    def _client(self, url: str, key: str, retries: int, timeout_s: float) -> openai.OpenAI:
        http = openai.DefaultHttpxClient(event_hooks={"response": [self._count]})
        return openai.OpenAI(
            base_url=f"{url}/v1", api_key=key, max_retries=retries, timeout=timeout_s, http_client=http
        )

    def _count(self, reply: httpx.Response) -> None:
        if reply.is_error:
            self.asked_again[str(reply.status_code)] += 1

    def _talk(self) -> None:
        while not self._stopping.is_set():
            number = next(self._numbers)
            model = self._models[-1 if number % 5 == 4 else 0]
            talk = Talk(f"{self._name}-{number}", model, is_chain=number % 2 == 1)
            self.talks.append(talk)
            for turn in range(self._length):
                if self._stopping.is_set():
                    break
                talk.turn(self._apis[(number + turn) % len(self._apis)], turn)
                self._stopping.wait(self._pause_s)
