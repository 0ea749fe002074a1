"""The two loads of the comparison on CPUs: what is asked in a round, and what its figures are. Sends nothing.

``looping``: random words to complete, greedy, a fixed number of tokens. A small model soon repeats itself, which
flatters speculative decoding. ``chat``: messages that people write, sampled, answers that the model ends itself.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.measures.corpus import Message
from benchmarks.measures.figures import Figures
from benchmarks.measures.load import Ask, Ran, busy_figures, figures_of, make_prompt

SEED = 0
LOOPING, CHAT = "looping", "chat"
_WARM_TOKENS = 8


class TooFewMessages(Exception):
    """The corpus would have to be asked twice."""


class Load(Protocol):
    """One kind of traffic."""

    @property
    def name(self) -> str: ...

    @property
    def sentence(self) -> str:
        """What is asked, for the head of a table."""

    def asks(self, engine: str, round_number: int, num_streams: int) -> list[Ask]:
        """The requests of one round to one engine."""

    def warm(self, engine: str, round_number: int, num_streams: int) -> Ask:
        """A short request before it."""

    def figures(self, ran: Ran) -> Figures:
        """What the round comes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looping:
    """Random words, fresh for every round and engine, so that no prefix cache helps."""

    num_words: int = 128
    num_tokens: int = 128
    fewest: int = 2
    """Requests of a round; else as many as there are streams."""
    name: str = LOOPING

    @property
    def sentence(self) -> str:
        return f"{self.num_words} random words each, {self.num_tokens} tokens, greedy, the model's end ignored"

    def asks(self, engine: str, round_number: int, num_streams: int) -> list[Ask]:
        return [
            self._ask(f"{SEED}/{engine}/{round_number}/{num_streams}/{index}", self.num_words, self.num_tokens)
            for index in range(max(self.fewest, num_streams))
        ]

    def warm(self, engine: str, round_number: int, num_streams: int) -> Ask:
        seed = f"{SEED}/{engine}/{round_number}/{num_streams}/warm"
        return self._ask(seed, self.num_words // 8, _WARM_TOKENS)

    def figures(self, ran: Ran) -> Figures:
        return figures_of(ran.answers, ran.ended - ran.started)

    def _ask(self, seed: str, num_words: int, num_tokens: int) -> Ask:
        return Ask(prompt=make_prompt(seed, num_words), max_tokens=num_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Natural messages, each asked once of every engine, with the same seeds: all engines get the same round."""

    messages: Sequence[Message]
    streams: Sequence[int]
    """The numbers of streams of the run, which share the corpus."""
    render: Callable[[str], str]
    """A message as the prompt that the model's chat template makes of it."""
    temperature: float = 0.8
    max_tokens: int = 256
    asks_of_a_stream: int = 3
    fewest: int = 4
    name: str = CHAT
    _order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        order = list(range(len(self.messages)))
        random.Random(SEED).shuffle(order)
        object.__setattr__(self, "_order", order)

    @property
    def sentence(self) -> str:
        return (
            f"chats of a corpus of {len(self.messages)}, temperature {self.temperature:g}, the model's own end, "
            f"at most {self.max_tokens} tokens"
        )

    def num_asks(self, num_streams: int) -> int:
        """Requests of a round."""
        return max(self.fewest, self.asks_of_a_stream * num_streams)

    def check(self, num_rounds: int) -> None:
        """Raises TooFewMessages where rounds would repeat messages, which prefix caches then have."""
        needed = num_rounds * sum(map(self.num_asks, self.streams))
        if needed > len(self.messages):
            raise TooFewMessages(
                f"{num_rounds} rounds of {', '.join(map(str, self.streams))} streams ask {needed} messages, and the "
                f"corpus has {len(self.messages)}: ask for fewer rounds or streams"
            )

    def asks(self, engine: str, round_number: int, num_streams: int) -> list[Ask]:
        counts = [self.num_asks(each) for each in self.streams]
        place = self.streams.index(num_streams)
        start = round_number * sum(counts) + sum(counts[:place])
        return [self._ask(index, self.max_tokens) for index in self._order[start : start + counts[place]]]

    def warm(self, engine: str, round_number: int, num_streams: int) -> Ask:
        text = f"Say hello {round_number + 1} times to {num_streams} people."
        return Ask(prompt=self.render(text), message=text, max_tokens=_WARM_TOKENS, ends_itself=True)

    def figures(self, ran: Ran) -> Figures:
        return busy_figures(ran)

    def _ask(self, index: int, max_tokens: int) -> Ask:
        text = self.messages[index].text
        return Ask(
            prompt=self.render(text),
            message=text,
            max_tokens=max_tokens,
            temperature=self.temperature,
            seed=index,
            ends_itself=True,
        )
