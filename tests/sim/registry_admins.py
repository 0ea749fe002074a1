"""Admins of the registry in virtual time: changes, rollouts, removals and aliases. They know no fault."""

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from axon.domain.registry import steps
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.rollout import Rollout
from axon.errors import AxonError, Conflict, DependencyDown
from axon.registry.catalog import Catalog
from tests.sim.loop import SimLoop
from tests.sim.registry_nodes import (
    HORIZON_S,
    NAME,
    RegistryHistory,
    make_version,
)
from tests.sim.registry_store import SimRegistry

if TYPE_CHECKING:
    from collections.abc import Callable


class Admins:
    """People who change the registry, each now and then, until the horizon."""

    def __init__(self, registry: SimRegistry, history: RegistryHistory, rng: random.Random, loop: SimLoop) -> None:
        self._registry, self._history, self._rng, self._loop = registry, history, rng, loop
        self._num_labels = 0

    async def run(self, admin: Catalog) -> None:
        acts = [self._bump, self._bump, self._bump_as_read, self._roll_out, self._roll_out, self._end_rollout]
        acts += [self._remove_version, self._switch_alias]
        while self._loop.monotonic() < HORIZON_S:
            await asyncio.sleep(self._rng.expovariate(1 / 3.0))
            try:
                await self._rng.choice(acts)(admin)
            except (Conflict, DependencyDown):
                continue  # refused for a reason, or not known to be done
            except AxonError as error:
                if error.code not in ("version_not_found", "rollout_not_found"):
                    raise

    async def _bump(self, admin: Catalog) -> None:
        await admin.change_deployment(NAME, _bumped, actor="admin")

    async def _bump_as_read(self, admin: Catalog) -> None:
        """Reads, thinks, and changes what it has read or nothing."""
        read = (await admin.snapshot()).deployments[NAME]
        await asyncio.sleep(self._rng.uniform(0.0, 3.0))
        made = await admin.change_deployment(NAME, _bumped, revision=read.revision, actor="admin")
        if made.memory_bytes != read.memory_bytes + 1:
            raise self._history.broken(f"a change of revision {read.revision} was made from another one")

    async def _roll_out(self, admin: Catalog) -> None:
        self._num_labels += 1
        made = await admin.add_version(make_version(f"v{self._num_labels}"), actor="admin")
        rollout = Rollout(id="", old="", new=made.id, steps=(3000, 7000), bake_s=4.0, began=0.0)
        await admin.start_rollout(NAME, rollout, actor="admin")

    async def _end_rollout(self, admin: Catalog) -> None:
        ends: list[Callable[[Deployment], Deployment]] = [
            lambda deployment: steps.promote(deployment, now=self._loop.now()),
            lambda deployment: steps.rollback(deployment, now=self._loop.now()),
            lambda deployment: steps.abort(deployment, now=self._loop.now(), reason="by hand", moves=True),
            steps.pause,
        ]
        await admin.change_deployment(NAME, self._rng.choice(ends), actor="admin")

    async def _remove_version(self, admin: Catalog) -> None:
        unused = self._registry.newest.versions.keys() - {
            m.version for m in self._registry.newest.deployments[NAME].members
        }
        if unused:
            await admin.remove_version(self._rng.choice(sorted(unused)), actor="admin")

    async def _switch_alias(self, admin: Catalog) -> None:
        await admin.set_alias("best", NAME, actor="admin")


def _bumped(deployment: Deployment) -> Deployment:
    return replace(deployment, memory_bytes=deployment.memory_bytes + 1)
