"""What a server does with a field of a request: honours it, takes it as a hint, or refuses it. Knows no field."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any


class Treatment(Enum):
    """What becomes of a field."""

    HONOURED = "honoured"
    HINT = "hint"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Directive:
    """One field."""

    treatment: Treatment
    note: str = ""
    """Why, or what to send instead."""
    neutral: tuple[Any, ...] = ()
    """Values of a refused field that are accepted because they change nothing, besides null."""


@dataclass(frozen=True)
class Directives:
    """The fields of one route."""

    route: str
    fields: Mapping[str, Directive]

    @cached_property
    def refused(self) -> dict[str, tuple[Any, ...]]:
        """The refused fields, each with its neutral values."""
        return {name: each.neutral for name, each in self.fields.items() if each.treatment is Treatment.REFUSED}

    @cached_property
    def notes(self) -> dict[str, str]:
        """Why fields are refused or what to send instead, by the field's name, as far as there is something to say."""
        return {name: each.note.replace("`", "'") for name, each in self.fields.items() if each.note}

    def named(self, treatment: Treatment) -> dict[str, Directive]:
        """The fields of one treatment, in the table's order."""
        return {name: each for name, each in self.fields.items() if each.treatment is treatment}


def honoured(names: str) -> dict[str, Directive]:
    """Fields that are honoured, by their names separated by blanks."""
    return {name: Directive(Treatment.HONOURED) for name in names.split()}


def hints(names: str, note: str) -> dict[str, Directive]:
    """Fields that change nothing, by their names separated by blanks, with the reason."""
    return {name: Directive(Treatment.HINT, note) for name in names.split()}


def hint(note: str = "") -> Directive:
    """A field that changes nothing."""
    return Directive(Treatment.HINT, note)


def refused(*neutral: Any, note: str = "") -> Directive:
    """A field that is refused unless its value is null or one of the neutral ones."""
    return Directive(Treatment.REFUSED, note, neutral)
