"""Sampling parameters: how the next token is chosen, and when a choice ends. Knows no tokenizer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """A job's sampling parameters; the seed stands in the job, because every job has one."""

    max_tokens: int
    """The most tokens a choice may get, replayed ones included."""
    temperature: float = 1.0
    """0 is greedy."""
    top_k: int = 0
    """Keeps the k most likely tokens; 0 keeps all."""
    top_p: float = 1.0
    """Nucleus sampling: keeps the fewest, most likely tokens whose probabilities sum to this share of those that
    ``top_k`` and ``min_p`` kept."""
    min_p: float = 0.0
    """Keeps tokens with at least this fraction of the most likely token's probability."""
    presence_penalty: float = 0.0
    """Taken from the logit of every token of the output."""
    frequency_penalty: float = 0.0
    """Taken from the logit of every token of the output, once for each time it stands there."""
    repetition_penalty: float = 1.0
    """Divides the positive and multiplies the negative logits of every token of prompt and output."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """Pairs of a token id and the number added to its logit."""
    min_tokens: int = 0
    """No token that would end the choice is chosen before it has this many, replayed ones included."""
    logprobs: int | None = None
    """Log probabilities to return: None for none, 0 for the chosen token's, n for the n most likely tokens' too."""
    prompt_logprobs: bool = False
    """Whether the prompt's log probabilities are returned too, with the first token of a choice."""
    prompt_top: int | None = None
    """Most likely tokens to return in the place of each prompt token, with their ids, and the prompt token's rank among
    all; None for as many as ``logprobs``, without ids and ranks."""
    stop: tuple[str, ...] = ()
    """Stop strings; the worker looks for them in the text, the engine does not know them."""
    stop_ids: tuple[int, ...] = ()
    """Token ids that end a choice as the model's own end token does."""
    ignore_eos: bool = False
    grammar: str = ""
    """Grammar that the answer must follow, as llguidance writes them; empty for none. A choice ends where its grammar
    ends, whatever ``ignore_eos`` says."""

    @property
    def penalises_output(self) -> bool:
        """Whether a penalty depends on the tokens of the output."""
        return bool(self.presence_penalty or self.frequency_penalty) or self.penalises_prompt

    @property
    def penalises_prompt(self) -> bool:
        """Whether a penalty depends on the tokens of the prompt."""
        return self.repetition_penalty != 1.0
