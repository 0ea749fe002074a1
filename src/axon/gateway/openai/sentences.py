"""OpenAI's wording of errors that lower layers raise in ours, because clients match these words. Knows no route."""

from collections.abc import Iterator
from contextlib import contextmanager

from axon.errors import AnswerTooLong, ContextTooLong, InvalidInput, PromptTooLong


@contextmanager
def blaming(prompt: str, answer: str) -> Iterator[None]:
    """Rewords errors about the prompt inside the block and names the request's field at fault.

    ``prompt`` is the field that holds the prompt, unless the error names another; ``answer`` is the field that sets the
    length of the answer.
    """
    try:
        yield
    except PromptTooLong as error:
        prompt = error.param or prompt
        num_tokens = f"at least {error.num_tokens}" if error.at_least else str(error.num_tokens)
        raise ContextTooLong(
            f"{_limit(error.max_model_len)} However, your {prompt} resulted in {num_tokens} tokens. "
            f"Please reduce the length of the {prompt}.",
            param=prompt,
        ) from None
    except AnswerTooLong as error:
        raise ContextTooLong(
            f"{_limit(error.max_model_len)} However, you requested {error.num_prompt + error.num_answer} tokens "
            f"({error.num_prompt} in the prompt, {error.num_answer} in the completion). "
            "Please reduce the length of the prompt or completion.",
            param=answer,
        ) from None
    except InvalidInput as error:
        error.param = error.param or prompt
        raise


def _limit(max_model_len: int) -> str:
    return f"This model's maximum context length is {max_model_len} tokens."
