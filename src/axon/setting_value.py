"""The value of one setting: read from text, checked for its type and range, shown without secrets. Reads no source."""

import math
import os
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from axon.errors import Misconfigured
from axon.runtime.field_docs import inner_type, type_text
from axon.runtime.service_url import HIDDEN, masked, shown

if TYPE_CHECKING:
    from dataclasses import Field

_MAY_BE_ZERO = (
    "batches.max_running",
    "worker.gather_s",
    "admission.requests_per_minute",
    "admission.tokens_per_minute",
    "admission.concurrent",
    "admission.queued",
    "admission.tokens_per_day",
    "admission.tokens_per_month",
    "admission.stored_bytes",
    "admission.stored_objects",
    "admission.backlog_s",
    "admission.slo_ttft_priority_s",
    "admission.slo_ttft_default_s",
    "admission.slo_ttft_flex_s",
    "gateway.failures_per_minute",
    "lifecycle.drain_s",
    "lifecycle.notice_s",
    "sessions.busy_wait_s",
    "sessions.retention_s",
    "traces.sample_ratio",
    "traces.slow_s",
)
_TRUTH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Spec(NamedTuple):
    """A setting as the loader knows it: its name, its type and where it is declared."""

    name: str
    """Dotted, as in ``gateway.port``."""
    hint: Any
    field: "Field[Any]"
    owner: type


def parse(spec: Spec, text: str, source: str) -> object:
    """Reads a value from text; raises ``Misconfigured``, which names the variable, flag or file entry ``source``."""
    hint = inner_type(spec.hint)
    try:
        value = _READERS[hint](text.strip()) if hint in _READERS else text
    except (KeyError, ValueError):
        link = (
            " (Kubernetes makes such variables for services: set enableServiceLinks: false.)"
            if "tcp://" in text
            else ""
        )
        raise Misconfigured(f"{source} must be {type_text(hint)}, not {_quoted(spec, text)}.{link}") from None
    return accept(spec, value, source)


_READERS: dict[Any, Callable[[str], object]] = {bool: lambda text: _TRUTH[text.lower()], int: int, float: float}


def accept(spec: Spec, value: object, source: str) -> object:
    """Checks a value's type and range; raises ``Misconfigured``, which names the ``source``."""
    hint = inner_type(spec.hint)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            close = suggest(str(value), get_args(hint))
            raise Misconfigured(f"{source} must be {type_text(hint)}, not {_quoted(spec, value)}.{close}")
        return value
    if hint is float and type(value) is int:
        value = float(value)
    if hint is Path and isinstance(value, str | Path) and str(value):
        return Path(os.path.expanduser(value)).absolute()
    if type(value) is not hint:
        raise Misconfigured(f"{source} must be {type_text(hint)}, not {_quoted(spec, value)}.")
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_range(spec, value, source)
    return value


def _check_range(spec: Spec, value: float, source: str) -> None:
    if spec.name.endswith("port"):
        if not 0 <= value <= 65535:
            raise Misconfigured(f"{source} must be a port from 0 to 65535, not {value}.")
        return
    zero = spec.name in _MAY_BE_ZERO or spec.field.default == 0
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise Misconfigured(f"{source} must be {'0 or more' if zero else 'more than 0'}, not {value}.")


def hide(spec: Spec, value: object) -> object:
    """The value as it may be shown: of a secret nothing, of a URL all but its password. Also where the type is wrong:
    a list may have the URL in it."""
    if spec.field.metadata.get("secret"):
        return HIDDEN if value else ""
    if spec.field.metadata.get("url"):
        return shown(value) if isinstance(value, str) else HIDDEN
    return masked(value) if isinstance(value, str) else value


def suggest(word: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest known word, to be put behind another; empty if none is near."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def _quoted(spec: Spec, value: object) -> str:
    found = hide(spec, value)
    return HIDDEN if found == HIDDEN or spec.field.metadata.get("secret") else repr(found)
