"""Work in tokens, and the seconds that one busy replica takes for it. Knows no replica and no queue."""

from dataclasses import dataclass

from axon.domain.scaling.finite import amount, positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Tokens to compute: a prompt token and a token of the answer cost differently."""

    prompt: float = 0.0
    """Prompt tokens that no cache holds."""
    answer: float = 0.0
    """Tokens of the answer, predicted where they are not known yet."""

    @property
    def tokens(self) -> float:
        """All tokens."""
        return amount(self.prompt) + amount(self.answer)

    def __add__(self, other: "Work") -> "Work":
        return Work(prompt=self.prompt + other.prompt, answer=self.answer + other.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Measured throughput of one busy replica in tokens per second; None or 0 while a figure is unknown."""

    prefill: float | None = None
    """Prompt tokens per second while it computes prompts alone."""
    decode: float | None = None
    """Answer tokens per second with every slot taken and no prompt to compute."""
    busy: float | None = None
    """Prompt and answer tokens per second with every slot taken, of the traffic as it came."""

    @property
    def is_known(self) -> bool:
        """Whether seconds can be told."""
        return positive(self.busy) is not None or None not in (positive(self.prefill), positive(self.decode))

    def seconds(self, work: Work) -> float | None:
        """Seconds of one replica that the work takes; None while the throughput is unknown."""
        prefill, decode, busy = positive(self.prefill), positive(self.decode), positive(self.busy)
        if prefill is not None and decode is not None:
            return amount(amount(work.prompt) / prefill + amount(work.answer) / decode)
        return amount(work.tokens / busy) if busy is not None else None
