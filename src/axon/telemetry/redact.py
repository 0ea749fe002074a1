"""Redaction: keeps keys and users' text out of logs. Knows values, no sink."""

import re
import traceback
from collections.abc import Mapping
from types import TracebackType

from axon.errors import AxonError
from axon.runtime.printable import finite

HIDDEN = "[redacted]"

_PRIVATE_NAMES = frozenset(
    {
        *("prompt", "messages", "message", "content", "text", "delta", "input", "output", "instructions", "body"),
        *("prompt_ids", "more_prompts", "token_ids", "tools", "arguments"),
        *("authorization", "cookie", "api_key", "apikey", "secret", "pepper", "password", "token"),
    }
)
_NUMBERS = (bool, int, float, type(None))
_KEY = re.compile(r"axk_[0-9A-Za-z_-]+")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[^\s'\",]+")
_URL_PASSWORD = re.compile(r"(\w+://[^\s:/@]*):\S+@")
_QUERY_PASSWORD = re.compile(r"(?i)((?:^|[?&\s'\"])\w*password)=[^&\s'\"]+")
# asyncio quotes the whole exception of a task that was not awaited.
_TASK_EXCEPTION = re.compile(r"exception=(\w+)\(.*\)", re.DOTALL)

# Messages of these classes are written by Axon or the operating system. Others quote their input: validation
# errors the request, database errors the row.
_SPEAKS_OF_ITSELF = (
    *(AxonError, OSError, RuntimeError, ImportError, MemoryError, AssertionError),
    *(AttributeError, NameError),
)


def clean(value: object) -> object:
    """The value, safe to write."""
    if isinstance(value, _NUMBERS):
        return finite(value)
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {str(name): clean_named(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [clean(inner) for inner in value]
    if isinstance(value, BaseException):
        return describe(value)
    return clean_text(repr(value))


def clean_named(name: str, value: object) -> object:
    """The value of a named field, safe to write. Numbers pass under any name: a count of tokens reveals no text."""
    private = name.lower() in _PRIVATE_NAMES and not isinstance(value, _NUMBERS)
    return HIDDEN if private else clean(value)


def clean_text(text: str) -> str:
    if "axk_" not in text and "=" not in text and "://" not in text and len(text.split(maxsplit=1)) < 2:
        return text  # most values are one word, in which none of the patterns can be
    text = _KEY.sub(f"axk_{HIDDEN}", text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
    text = _QUERY_PASSWORD.sub(rf"\1={HIDDEN}", text)
    return _TASK_EXCEPTION.sub(rf"exception=\1({HIDDEN})", text)


def describe(error: BaseException) -> str:
    """An exception's type, and its message if that cannot quote users' text."""
    name = type(error).__name__
    return f"{name}: {clean_text(str(error))}" if isinstance(error, _SPEAKS_OF_ITSELF) and str(error) else name


def format_exception(error: BaseException) -> str:
    """A traceback with its causes, the messages as in ``describe``."""
    parts = [f"{describe(error)}\n{_frames(error.__traceback__)}"]
    seen = {id(error)}
    while (cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        if id(cause) in seen:
            break
        seen.add(id(cause))
        parts.append(f"caused by {describe(cause)}\n{_frames(cause.__traceback__)}")
        error = cause
    return "".join(parts).rstrip("\n")


def _frames(trace: TracebackType | None) -> str:
    return "".join(traceback.format_list(traceback.extract_tb(trace)))
