"""Renders messages to a prompt's text with the model's chat template (Jinja). Knows no tokens."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from axon.errors import InvalidInput, Misconfigured, Unsupported
from axon.text.harmony import is_harmony
from axon.text.reasoning import CLOSE

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
"""A JSON value, as messages and tools consist of."""
Message = Mapping[str, Json]
"""One message of a chat: ``role``, ``content`` and what else its template reads."""

RESERVED = frozenset({"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"})
"""Names that a template reads and that no option of a request may set."""
DEFAULT_TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
"""Template for the byte tokenizer, which belongs to no model."""


class ChatTemplate:
    """A compiled template, run in jinja2's immutable sandbox."""

    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
        self.is_harmony = is_harmony(source)
        """Whether its messages are in the harmony format."""
        self.reasons = CLOSE in source or self.is_harmony
        """Whether the model's answers may begin with a block of reasoning."""
        self.knows_tools = "tools" in source
        self.source = source
        self._special = {"bos_token": bos_token, "eos_token": eos_token}
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise Misconfigured(f"the model's chat template cannot be read: {error}") from error

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Message] | None = None,
        options: Mapping[str, Json] | None = None,
    ) -> str:
        """Returns the prompt; a template that cannot take these messages raises InvalidInput.

        ``options`` are further names that the template may read, such as ``enable_thinking``.
        """
        try:
            return self._template.render(
                {
                    **(options or {}),
                    **self._special,
                    "messages": messages,
                    "add_generation_prompt": add_generation_prompt,
                    "tools": tools,
                }
            )
        except (TemplateError, TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise InvalidInput(f"the model's chat template refuses these messages: {error}") from error


def load_template(model_dir: Path | None) -> ChatTemplate | None:
    """The chat template of a model folder, None if it has none; the default one where there is no model."""
    if model_dir is None:
        return ChatTemplate(DEFAULT_TEMPLATE)
    config = _read_tokenizer_config(model_dir)
    path = model_dir / "chat_template.jinja"
    try:
        source = path.read_text(encoding="utf-8") if path.is_file() else _default_source(config.get("chat_template"))
    except (UnicodeDecodeError, TypeError, KeyError) as error:
        raise Misconfigured(f"the model's chat template cannot be read: {error}") from error
    if source is None:
        return None
    return ChatTemplate(
        source,
        bos_token=_token_text(config.get("bos_token")),
        eos_token=_token_text(config.get("eos_token")),
    )


def require_template(template: ChatTemplate | None) -> ChatTemplate:
    """The template, or Unsupported: a base model completes text but does not chat."""
    if template is None:
        raise Unsupported("this model has no chat template; use completions")
    return template


def _default_source(template: Any) -> str | None:
    """Some folders carry several named templates; chat uses the one called default."""
    if isinstance(template, list):
        template = {each["name"]: each["template"] for each in template}.get("default")
    return template if isinstance(template, str) else None


def _read_tokenizer_config(model_dir: Path) -> dict[str, Any]:
    path = model_dir / "tokenizer_config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise Misconfigured(f"{path} cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise Misconfigured(f"{path} cannot be read: it is no JSON object")
    return config


def _token_text(token: Any) -> str:
    """Folders write a token as its text or as an object with its content."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else ""


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
