"""Renders a conversation with the model's template (sandboxed) and tokenises it, long ones in threads. Knows no
weights."""

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from axon.domain.content.tool import Tool
from axon.errors import InvalidInput, PromptTooLong
from axon.text.chat import ChatEncoder
from axon.text.harmony import HARMONY, has_marks
from axon.text.reasoning import OPEN
from axon.text.template import ChatTemplate, Json, Message, require_template
from axon.text.tokenizer import Tokenizer
from axon.text.tools.formats import CallFormat, call_format_of
from axon.text.tools.prompt import PLAIN, Dialect, num_characters, prepared

T = TypeVar("T")
_TAIL = 16
_SHORT_CHARS = 2000
"""A prompt up to this length is tokenised at once, in about a millisecond: a thread's hop and back may take longer."""
_MESSAGE_CHARS = 50
"""A message counts for this many characters more than it has: rendering it takes time too."""


class Threads:
    """The threads in which long prompts are tokenised, two at a time, whatever their tokenizers."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prompts")
        self._limit = asyncio.Semaphore(2)

    async def run(self, encode: Callable[[], T]) -> T:
        async with self._limit:
            return await asyncio.get_running_loop().run_in_executor(self._pool, encode)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Prompts:
    """Renders and tokenises prompts for one tokenizer and template."""

    def __init__(
        self, tokenizer: Tokenizer, template: ChatTemplate | None, threads: Threads, *, max_model_len: int = 0
    ) -> None:
        self.tokenizer = tokenizer
        self.max_model_len = max_model_len
        self._template, self._threads = template, threads
        self._taught = call_format_of(template.source) if template else None
        """The format of tool calls that the template teaches; None if it knows no tools."""
        self._options: Mapping[str, Json] = {}

    def within(self, max_model_len: int) -> "Prompts":
        """The same for another context length; both share the threads."""
        other = copy.copy(self)
        other.max_model_len = max_model_len
        return other

    def with_options(self, options: Mapping[str, Json]) -> "Prompts":
        """The same for requests that give the chat template these options."""
        if not options:
            return self
        other = copy.copy(self)
        other._options = options
        return other

    def dialect(self, override: str = "") -> Dialect:
        """How tools are described to the model: by its template, or in our words if the template knows none.

        ``override`` is the format that the operator says the model writes; a template without tools leaves it unused.
        """
        if self._taught is None and not (override and self._template and self._template.knows_tools):
            return PLAIN
        return Dialect(CallFormat(override) if override else self._taught or CallFormat.HERMES, native=True)

    async def chat(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = (), dialect: Dialect | None = None
    ) -> list[int]:
        """Token ids of a chat, up to where the model's next message begins; raises ``PromptTooLong``."""
        return self._checked(await self.unchecked(messages, tools=tools, dialect=dialect))

    async def unchecked(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        dialect: Dialect | None = None,
        max_windows: int = 1,
    ) -> list[int]:
        """The same without the check of the length; refuses text that is certain to exceed ``max_windows`` contexts."""
        size = num_characters(messages, tools)
        self._refuse_hopeless(size // max_windows)
        encoder, options = ChatEncoder(self.tokenizer, require_template(self._template)), self._options

        def encode() -> list[int]:
            shown, offered = prepared(messages, tools, dialect or self.dialect())
            return encoder.encode(shown, tools=offered, options=options)

        return await self._run(encode, size + _MESSAGE_CHARS * len(messages))

    async def text(self, prompt: str, *, add_special: bool = True) -> list[int]:
        """Token ids of a plain text, with the model's begin-of-text token unless ``add_special`` is false."""
        self._refuse_hopeless(len(prompt))
        encode = partial(self.tokenizer.encode, prompt, add_special=add_special)
        return self._checked(await self._run(encode, len(prompt)))

    def ids(self, prompt_ids: Sequence[int]) -> list[int]:
        """Checks token ids that the client sent."""
        ids = self._checked(list(prompt_ids))  # first: it takes constant time
        if not all(0 <= token_id < self.tokenizer.vocab_size for token_id in ids):
            raise InvalidInput(f"Token ids must be below {self.tokenizer.vocab_size}.")
        return ids

    def reasoning(self, prompt_ids: Sequence[int]) -> str:
        """The answer's reasoning mode: ``harmony`` for a model of that format, ``inside`` if the template has opened
        the reasoning, else ``text``."""
        if self._template is not None and self._template.is_harmony and has_marks(self.tokenizer):
            return HARMONY
        tail = self.tokenizer.decode(prompt_ids[-_TAIL:])
        return "inside" if tail.rstrip().endswith(OPEN) else "text"

    async def run_many(self, work: Callable[[], T], num_characters: int) -> T:
        """Does work with the tokenizer on this many characters or tokens: at once if they are few, else in a thread."""
        return await self._run(work, num_characters)

    async def _run(self, encode: Callable[[], T], num_characters: int) -> T:
        if num_characters <= _SHORT_CHARS:
            return encode()
        return await self._threads.run(encode)

    def _refuse_hopeless(self, num_characters: int) -> None:
        """Refuses, before tokenising, text that would not fit even if every token were the longest one."""
        least = num_characters // self.tokenizer.max_token_chars
        if least > self.max_model_len:
            raise PromptTooLong(max_model_len=self.max_model_len, num_tokens=least, at_least=True)

    def _checked(self, ids: list[int]) -> list[int]:
        if len(ids) >= self.max_model_len:
            raise PromptTooLong(max_model_len=self.max_model_len, num_tokens=len(ids))
        return ids
