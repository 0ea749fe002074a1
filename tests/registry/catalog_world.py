"""A registry in a store of its own, and what its catalogue refuses. Tests nothing."""

from dataclasses import dataclass
from typing import Any

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.model import Model
from axon.errors import AxonError
from axon.registry.catalog import Catalog
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import version

MODEL = Model(name="small", max_model_len=8192, created=0.0)
DEPLOYMENT = Deployment(name="small", model="small", created=0.0)
ACTOR = "key_1"


@dataclass
class World:
    store: SqliteStore
    clock: FakeClock
    pinned: dict[str, int]
    unfinished: dict[str, int]
    catalog: Catalog

    async def add_small(self) -> None:
        """A model with two versions; the first is deployed."""
        await self.catalog.add_model(MODEL, version("v1"), deploys=True, actor=ACTOR)
        await self.catalog.add_version(version("v2"), actor=ACTOR)


async def nobody(version_id: str) -> int:
    return 0


async def refused(call: Any, kind: type[AxonError], code: str, words: str = "") -> None:
    with pytest.raises(kind) as error:
        await call
    assert error.value.code == code, error.value.message
    assert words in error.value.message
    assert error.value.message.endswith(".")
