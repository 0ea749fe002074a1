"""What a person has chosen to see, and how a key changes it. Functions of their arguments alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")
MAX_TYPED = 80
"""Characters of a filter."""
FASTEST_S, SLOWEST_S = 0.5, 60.0


class Sort(StrEnum):
    """What rows are ordered by."""

    BUSY = "busy"
    """What runs, then tokens a second."""
    TOKENS = "tokens/s"
    WAITING = "waiting"
    """Turns in the queue; where a table has none, as ``busy``."""
    KV = "KV"
    """Share of KV blocks in use; where a table has none, as ``busy``."""
    NAME = "name"


class Section(StrEnum):
    """The tables."""

    MODELS = "models"
    TENANTS = "tenants"
    WORKERS = "workers"
    QUEUES = "queues"


class Field(StrEnum):
    """The filters, each of which is typed."""

    TEXT = "text"
    MODEL = "model"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that is chosen."""

    text: str = ""
    model: str = ""
    tenant: str = ""
    sort: Sort = Sort.BUSY
    is_reversed: bool = False
    section: Section | None = None
    """The one table that is shown; None for all."""
    is_paused: bool = False
    shows_help: bool = False
    interval_s: float = 2.0
    typing: Field | None = None
    """The filter that is being typed."""
    typed: str = ""
    has_ended: bool = False


HELP = (
    ("q", "leave; so does ctrl-c"),
    ("?", "show or leave this help"),
    ("p or space", "pause, and go on"),
    ("s / S", "sort by the next key, or by the one before: " + ", ".join(Sort)),
    ("r", "reverse the order"),
    ("/", "show only rows with this text"),
    ("m", "show only this model, or those whose names contain it"),
    ("t", "show only this tenant, likewise"),
    ("esc", "clear all filters"),
    ("tab", "show one table alone: " + ", ".join(Section)),
    ("a", "show all tables"),
    ("+ / -", "look more often, or more rarely"),
)
"""Each key with what it does."""


def pressed(view: View, key: str) -> View:
    """The view after a key: a character, or a name such as ``enter``. Keys that mean nothing change nothing."""
    if view.typing is not None:
        return _typed(view, view.typing, key)
    if view.shows_help and key in ("?", "esc", "enter"):
        return replace(view, shows_help=False)
    match key:
        case "q" | "ctrl-c" | "ctrl-d":
            return replace(view, has_ended=True)
        case "?" | "h":
            return replace(view, shows_help=not view.shows_help)
        case "p" | " ":
            return replace(view, is_paused=not view.is_paused)
        case "s" | "S":
            return replace(view, sort=_next(list(Sort), view.sort, -1 if key == "S" else 1))
        case "r":
            return replace(view, is_reversed=not view.is_reversed)
        case "/" | "m" | "t":
            field = {"/": Field.TEXT, "m": Field.MODEL, "t": Field.TENANT}[key]
            return replace(view, typing=field, typed=getattr(view, field), shows_help=False)
        case "esc":
            return replace(view, text="", model="", tenant="")
        case "tab" | "backtab":
            sections: list[Section | None] = [None, *Section]
            return replace(view, section=_next(sections, view.section, -1 if key == "backtab" else 1))
        case "a":
            return replace(view, section=None)
        case "+":
            return replace(view, interval_s=max(FASTEST_S, view.interval_s / 2))
        case "-":
            return replace(view, interval_s=min(SLOWEST_S, view.interval_s * 2))
        case _:
            return view


def _typed(view: View, field: Field, key: str) -> View:
    match key:
        case "enter":
            return _filtered(replace(view, typing=None, typed=""), field, view.typed.strip())
        case "esc":
            return replace(view, typing=None, typed="")
        case "ctrl-c":
            return replace(view, has_ended=True)
        case "backspace":
            return replace(view, typed=view.typed[:-1])
        case "ctrl-u":
            return replace(view, typed="")
        case _ if len(key) == 1 and key.isprintable():
            return replace(view, typed=(view.typed + key)[:MAX_TYPED])
        case _:
            return view


def _filtered(view: View, field: Field, typed: str) -> View:
    match field:
        case Field.TEXT:
            return replace(view, text=typed)
        case Field.MODEL:
            return replace(view, model=typed)
        case Field.TENANT:
            return replace(view, tenant=typed)


def _next(choices: Sequence[T], now: T, step: int) -> T:
    return choices[(choices.index(now) + step) % len(choices)]
