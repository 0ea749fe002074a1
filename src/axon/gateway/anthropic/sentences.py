"""Anthropic's wording of errors that lower layers raise in ours, because its clients match these words."""

from collections.abc import Iterator
from contextlib import contextmanager

from axon.errors import AnswerTooLong, ContextTooLong, InvalidInput, PromptTooLong


@contextmanager
def blaming() -> Iterator[None]:
    """Rewords errors about the prompt's length inside the block; any other error blames the messages."""
    try:
        yield
    except PromptTooLong as error:
        raise ContextTooLong(
            f"prompt is too long: {error.num_tokens} tokens > {error.max_model_len} maximum", param="messages"
        ) from None
    except AnswerTooLong as error:
        raise ContextTooLong(
            f"input length and `max_tokens` exceed context limit: {error.num_prompt} + {error.num_answer} > "
            f"{error.max_model_len}, decrease input length or `max_tokens` and try again",
            param="max_tokens",
        ) from None
    except InvalidInput as error:
        error.param = error.param or "messages"
        raise
