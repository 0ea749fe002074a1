"""Conversations that run on while a fleet changes its versions: each notes by which version it was answered."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import httpx

from tests.fleet.versions import MODEL, rotated

_SHIFTS = range(4)


@dataclass
class Talk:
    """One conversation: a session of turns, each answered by one version."""

    name: str
    said: list[str] = field(default_factory=list)
    """The version of each answer, by its tokens."""
    moves: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def turn(self, http: httpx.Client, url: str, number: int) -> None:
        """One more turn; its tokens and its label must name the same version."""
        prompt = f"{self.name} turn {number}."
        body = {"model": MODEL, "prompt": prompt, "max_tokens": 64}
        try:
            answer = http.post(f"{url}/v1/completions", json=body, headers={"x-axon-session": self.name})
        except httpx.HTTPError as error:
            self.problems.append(repr(error))
            return
        if answer.status_code != 200:
            self.problems.append(answer.text)
            return
        found = answer.json()
        text = found["choices"][0]["text"]
        versions = [f"{MODEL}@v{shift + 1}" for shift in _SHIFTS if rotated(prompt, shift) == text]
        if versions != [found["system_fingerprint"]]:
            self.problems.append(f"{text!r} is labelled {found['system_fingerprint']}")
        self.said.append(found["system_fingerprint"])
        if moved := found.get("axon", {}).get("moved"):
            self.moves.append(moved)

    @property
    def is_kept(self) -> bool:
        """Whether one version answered from the first turn to the last, but for moves that were told."""
        changes = [(old, new) for old, new in zip(self.said, self.said[1:], strict=False) if old != new]
        return changes == [(move["from"], move["to"]) for move in self.moves]


class Talks:
    """Conversations in threads until ``stop``: ``width`` at a time, each of ``length`` turns, then another one."""

    def __init__(self, urls: list[str], key: str, *, width: int, length: int, pause_s: float = 0.0) -> None:
        self._urls, self._key, self._length, self._pause_s = urls, key, length, pause_s
        self.talks: list[Talk] = []
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

    def _talk(self) -> None:
        headers = {"Authorization": f"Bearer {self._key}"}
        with httpx.Client(headers=headers, timeout=60) as http:
            while not self._stopping.is_set():
                number = next(self._numbers)
                talk = Talk(f"session-{number}")
                self.talks.append(talk)
                for turn in range(self._length):
                    if self._stopping.is_set():
                        break
                    talk.turn(http, self._urls[(number + turn) % len(self._urls)], turn)
                    self._stopping.wait(self._pause_s)

    @property
    def num_turns(self) -> int:
        return sum(len(talk.said) for talk in self.talks)

    @property
    def problems(self) -> list[str]:
        return [problem for talk in self.talks for problem in talk.problems]

    def first_versions(self, since: int = 0) -> Counter[str]:
        """The versions on which the conversations from this number on began."""
        return Counter(talk.said[0] for talk in self.talks[since:] if talk.said)
