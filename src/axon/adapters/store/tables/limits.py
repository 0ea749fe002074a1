"""Encodes limits for a database: those that are set, as readable JSON. Knows no table."""

from dataclasses import fields

import msgspec

from axon.domain.tenants.tenant import Limits
from axon.errors import DependencyDown


def encode(limits: Limits) -> str:
    """The set limits as JSON; equal limits give equal texts."""
    said = {each.name: getattr(limits, each.name) for each in fields(limits)}
    return msgspec.json.encode({name: value for name, value in said.items() if value is not None}).decode()


def decode(text: str, whose: str) -> Limits:
    """Decodes limits; those of a later release are ignored."""
    try:
        return msgspec.json.decode(text, type=Limits)
    except msgspec.DecodeError as error:
        raise DependencyDown(f"The limits of {whose} cannot be read.", code="record_unreadable") from error
