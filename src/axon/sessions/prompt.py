"""A conversation to token ids: the model's own template, in a sandbox, off the event loop. Knows no weights."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from axon.errors import InvalidInput, PromptTooLong
from axon.text.chat import ChatEncoder
from axon.text.reasoning import OPEN
from axon.text.template import ChatTemplate, require_template
from axon.text.tokenizer import Tokenizer

Message = Mapping[str, str]
_TAIL = 16


class Prompts:
    """Renders and tokenises for one deployment, a bounded number at a time."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate | None, *, max_model_len: int) -> None:
        self.tokenizer = tokenizer
        self.max_model_len = max_model_len
        self._template = template
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prompts")
        self._turn = asyncio.Semaphore(2)

    async def chat(self, messages: Sequence[Message]) -> list[int]:
        """The prompt that asks the model for the next message."""
        return self._checked(await self.unchecked(messages))

    async def unchecked(self, messages: Sequence[Message], *, max_windows: int = 1) -> list[int]:
        """The same, whether or not it leaves room for an answer; never much more than so many windows of tokens."""
        self._refuse_hopeless(sum(len(message["content"]) for message in messages) // max_windows)
        encoder = ChatEncoder(self.tokenizer, require_template(self._template))
        return await self._run(lambda: encoder.encode(messages))

    async def text(self, prompt: str) -> list[int]:
        """A bare text, begun as the model's texts begin."""
        self._refuse_hopeless(len(prompt))
        return self._checked(await self._run(lambda: self.tokenizer.encode(prompt, add_special=True)))

    def ids(self, prompt_ids: Sequence[int]) -> list[int]:
        """Token ids that the client chose itself."""
        ids = self._checked(list(prompt_ids))  # first, for it looks at none of them
        if not all(0 <= token_id < self.tokenizer.vocab_size for token_id in ids):
            raise InvalidInput(f"Token ids must be below {self.tokenizer.vocab_size}.")
        return ids

    def reasoning(self, prompt_ids: Sequence[int]) -> str:
        """How the answer to a chat's prompt begins: ``inside`` when the template has opened the thinking already."""
        tail = self.tokenizer.decode(prompt_ids[-_TAIL:])
        return "inside" if tail.rstrip().endswith(OPEN) else "text"

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, encode: Callable[[], list[int]]) -> list[int]:
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._threads, encode)

    def _refuse_hopeless(self, num_characters: int) -> None:
        """Text that cannot fit even if every token were the longest is refused before it is tokenised."""
        least = num_characters // self.tokenizer.max_token_chars
        if least > self.max_model_len:
            raise PromptTooLong(max_model_len=self.max_model_len, num_tokens=least, at_least=True)

    def _checked(self, ids: list[int]) -> list[int]:
        if len(ids) >= self.max_model_len:
            raise PromptTooLong(max_model_len=self.max_model_len, num_tokens=len(ids))
        return ids
