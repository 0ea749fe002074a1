"""Encodes a conversation to token ids. Control tokens come from the template only, never from a message's text.

A message may contain the text of a control token, say ``<|im_end|>``. If the rendered prompt were parsed as a
whole, that text would end the message. So each such text in a message is swapped for one placeholder character
before the template runs; what the template wrote is then encoded with control tokens, and what stood behind a
placeholder without. A message with no such text passes unchanged, so ordinary prompts get exactly the usual ids.

This holds for templates that copy, trim or split what they are given. One that deleted characters inside a message
could still join two halves of a control text; none is known that does.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from axon.errors import InvalidInput
from axon.text.template import ChatTemplate, Json, Message
from axon.text.tokenizer import Tokenizer


class ChatEncoder:
    """Renders and encodes chats for one model."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self._tokenizer = tokenizer
        self._template = template
        # Longest first: a control text may begin with another one.
        self._control_texts = sorted(tokenizer.control_texts, key=len, reverse=True)

    def encode(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Message] | None = None,
        options: Mapping[str, Json] | None = None,
    ) -> list[int]:
        """Returns the prompt's ids; raises InvalidInput where the template does."""
        swap = _Swap(self._control_texts)
        prompt = self._template.render(
            swap.hide(messages),
            add_generation_prompt=add_generation_prompt,
            tools=swap.hide(tools),
            options=swap.hide(options),
        )
        ids: list[int] = []
        for text, is_control_text in swap.reveal(prompt):
            ids += self._tokenizer.encode(text, parse_special=not is_control_text)
        return ids


class _Swap:
    """The placeholders of one prompt: characters of a Unicode private use plane, which have no meaning in text.

    If a message contains such a character, it is swapped as well, so that every placeholder was set here.
    """

    _PLANE = range(0xF0000, 0xFFFFE)
    _PLACEHOLDER = re.compile("[\U000f0000-\U000ffffd]")

    def __init__(self, control_texts: list[str]) -> None:
        self._control_texts = frozenset(control_texts)
        self._hideable = re.compile("|".join([*map(re.escape, control_texts), self._PLACEHOLDER.pattern]))
        self._placeholder_of: dict[str, str] = {}

    def hide(self, value: Any) -> Any:
        """A deep copy of messages or tools with control texts replaced by placeholders."""
        if isinstance(value, str):
            return self._hideable.sub(lambda match: self._swap(match[0]), value)
        if isinstance(value, Mapping):
            return {self.hide(key): self.hide(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(item) for item in value]
        return value

    def reveal(self, prompt: str) -> Iterator[tuple[str, bool]]:
        """The pieces of a rendered prompt, each with whether it is a control text from a message."""
        text_of = {placeholder: text for text, placeholder in self._placeholder_of.items()}
        piece = ""
        end = 0
        for match in self._PLACEHOLDER.finditer(prompt):
            piece += prompt[end : match.start()]
            end = match.end()
            text = text_of.get(match[0], match[0])
            if text in self._control_texts:
                yield piece, False
                yield text, True
                piece = ""
            else:
                piece += text
        yield piece + prompt[end:], False

    def _swap(self, text: str) -> str:
        if text not in self._placeholder_of:
            if len(self._placeholder_of) == len(self._PLANE):
                raise InvalidInput("the messages use too many private use characters")
            self._placeholder_of[text] = chr(self._PLANE[len(self._placeholder_of)])
        return self._placeholder_of[text]
