"""The models of one server, as written in its settings: ``NAME=SOURCE;SETTING=VALUE`` for each. Opens no file."""

from collections.abc import Mapping
from dataclasses import dataclass

from axon.domain.names import SERVED_RULE, is_served_name
from axon.errors import Misconfigured


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model of several."""

    name: str
    """The name that clients ask for it by."""
    source: str
    engine: tuple[tuple[str, str], ...] = ()
    """Settings of the engine for this model alone, each with its value as text."""


def model_entries(text: str) -> tuple[ModelEntry, ...]:
    """The models in a text; none for an empty one. Raises ``Misconfigured`` for a text that cannot be read."""
    entries = tuple(_entry(each.strip()) for each in text.split(",") if each.strip())
    names = [entry.name for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Misconfigured(f"Two models have the name {twice}; give each its own: --model NAME=SOURCE.")
    return entries


def is_entry(text: str) -> bool:
    """Whether a text names a model (``NAME=SOURCE``), in place of a source alone."""
    name, equals, _ = text.partition("=")
    return bool(equals) and is_served_name(name.strip())


def table_text(table: Mapping[str, object]) -> str:
    """The text of a file's table ``[models]``: each model is a source, or a table with a source and settings."""
    return ",".join(_table_entry(name, value) for name, value in table.items())


def _table_entry(name: str, value: object) -> str:
    table = value if isinstance(value, dict) else {"source": value}
    source = table.get("source")
    if not isinstance(source, str) or not source:
        raise Misconfigured(f"[models.{name}] needs a source: a path, or the name of a model in the models folder.")
    settings = [f"{key}={_plain(each)}" for key, each in table.items() if key != "source"]
    return ";".join([f"{name}={source}", *settings])


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _entry(text: str) -> ModelEntry:
    model, *settings = (part.strip() for part in text.split(";"))
    name, equals, source = (part.strip() for part in model.partition("="))
    if not equals or not source:
        raise Misconfigured(f"The model {model!r} has no name: with several models each is written NAME=SOURCE.")
    if not is_served_name(name):
        raise Misconfigured(f"A model's name must have {SERVED_RULE}; {name!r} does not.")
    return ModelEntry(name=name, source=source, engine=tuple(_assigned(name, each) for each in settings if each))


def _assigned(model: str, text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise Misconfigured(
            f"The model {model} has {text!r} after its source: write SETTING=VALUE, such as dtype=int8."
        )
    return name, value
