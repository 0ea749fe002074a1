"""Administration of the registry: models, versions, adapters, deployments, aliases, prices. Knows no HTTP, no terminal.

Every operation reads a snapshot, checks the change against it and writes it only if the registry has not changed since.
So no check is ever overtaken: a version that somebody deploys meanwhile is not removed.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from axon.domain.ids import new_id
from axon.domain.registry import steps
from axon.domain.registry.adapter import Adapter
from axon.domain.registry.change import Change
from axon.domain.registry.deployment import Alias, Deployment
from axon.domain.registry.letters import joined
from axon.domain.registry.model import Model
from axon.domain.registry.price import Price
from axon.domain.registry.record import Edit, Record, kind_of, name_of
from axon.domain.registry.rollout import Rollout
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Version
from axon.errors import Conflict
from axon.ports.store import RegistryStore
from axon.registry import rules
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import Clock

_TRIES = 10
R = TypeVar("R", bound=Record)


async def _none(name: str) -> int:
    return 0


class Catalog:
    """Operations of the admin API and the command line.

    ``pinned`` counts the sessions that are pinned to a version, ``unfinished`` the accepted turns of a deployment that
    have not ended. ``check_version`` raises ``InvalidInput`` for a new version that no worker could serve.
    ``letter_rest_s`` is the longest time that a turn may take. An operation's ``revision`` is that of the record which
    it was made from; with None it changes what is there.
    """

    def __init__(
        self,
        store: RegistryStore,
        writer: RegistryWriter,
        clock: Clock,
        *,
        pinned: Callable[[str], Awaitable[int]],
        unfinished: Callable[[str], Awaitable[int]] = _none,
        check_version: Callable[[Version], None] = lambda version: None,
        letter_rest_s: float = 600.0,
    ) -> None:
        self._store, self._writer, self._clock = store, writer, clock
        self._pinned, self._unfinished = pinned, unfinished
        self._check_version, self._letter_rest_s = check_version, letter_rest_s
        self._turn = asyncio.Lock()

    async def snapshot(self) -> Snapshot:
        """Everything."""
        return await self._store.snapshot()

    async def changes(self, *, after: int, limit: int) -> Sequence[Change]:
        """The audit trail after a number, in order; fewer than ``limit`` where they are large."""
        return await self._store.changes(after=after, limit=limit)

    async def revision(self) -> int:
        """The number of the last change."""
        return await self._store.revision()

    async def add_model(
        self, model: Model, version: Version | None = None, *, deploys: bool = False, actor: str
    ) -> Model:
        """Adds a model; with its first version and a deployment of the model's name if asked for, all or none."""
        now = self._clock.now()
        records: list[Record] = [replace(model, created=now)]
        if version is not None:
            self._check_version(version)
            records.append(replace(version, created=now))
            if deploys:
                records.append(self._deployed(Deployment(name=model.name, model=model.name, created=now), version.id))
        made = await self._add(records, actor=actor)
        assert isinstance(made[0], Model)
        return made[0]

    async def change_model(
        self, name: str, change: Callable[[Model], Model], *, revision: int | None = None, actor: str
    ) -> Model:
        """Changes what is known about a model."""
        return await self._change(lambda snapshot: rules.model_of(snapshot, name), change, revision, actor)

    async def remove_model(self, name: str, *, revision: int | None = None, actor: str) -> None:
        """Removes a model without versions, together with its prices; turns keep the price that held for them."""

        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            model = rules.model_of(snapshot, name)
            rules.check_revision(model, _words(model), revision)
            rules.check_model_unused(snapshot, model)
            prices = [price for price in snapshot.prices if price.model == name]
            return [*((price, None) for price in prices), (model, None)]

        await self._edit(decide, actor)

    async def add_version(self, version: Version, *, actor: str) -> Version:
        """Registers a version of a model. It can be removed and never changed; a removed version's id is given again
        for the same files only, because stored turns name it."""
        self._check_version(version)
        (made,) = await self._add([replace(version, created=self._clock.now())], actor=actor)
        assert isinstance(made, Version)
        return made

    async def record_kernel(self, version_id: str, kernel: str, *, actor: str) -> Version:
        """Records the kernel that computes a version, once; raises ``Conflict`` for another one."""

        def change(version: Version) -> Version:
            if version.kernel not in ("", kernel):
                raise Conflict(
                    f"The version '{version_id}' is computed by the kernel '{version.kernel}', not by '{kernel}', "
                    "whose tokens may differ: register another version for it.",
                    code="kernel_differs",
                )
            return replace(version, kernel=kernel)

        return await self._change(lambda snapshot: rules.version_of(snapshot, version_id), change, None, actor)

    async def remove_version(self, version_id: str, *, revision: int | None = None, actor: str) -> None:
        """Removes a version that no deployment has and no session is pinned to."""

        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            version = rules.version_of(snapshot, version_id)
            rules.check_revision(version, _words(version), revision)
            rules.check_version_unused(snapshot, version)
            rules.check_pinned(version_id, await self._pinned(version_id))
            return [(version, None)]

        await self._edit(decide, actor)

    async def create_deployment(self, deployment: Deployment, version_id: str, *, actor: str) -> Deployment:
        """Creates a deployment, whose sessions begin on this version."""
        made = self._deployed(replace(deployment, created=self._clock.now()), version_id)
        (added,) = await self._add([made], actor=actor)
        assert isinstance(added, Deployment)
        return added

    async def change_deployment(
        self, name: str, change: Callable[[Deployment], Deployment], *, revision: int | None = None, actor: str
    ) -> Deployment:
        """Changes a deployment's settings."""
        return await self._change(lambda snapshot: rules.deployment_of(snapshot, name), change, revision, actor)

    async def start_rollout(
        self, name: str, rollout: Rollout, *, revision: int | None = None, actor: str
    ) -> Deployment:
        """Starts a rollout; its version joins the deployment if it is not in it yet."""
        begun = replace(rollout, id=new_id("ro_", self._clock.now()), began=self._clock.now())

        def change(deployment: Deployment) -> Deployment:
            if deployment.member(begun.new) is None:
                deployment = joined(deployment, begun.new, at=begun.began, rest_s=self._letter_rest_s)
            return steps.start(deployment, begun)

        return await self.change_deployment(name, change, revision=revision, actor=actor)

    async def remove_deployment(self, name: str, *, revision: int | None = None, actor: str) -> None:
        """Removes a deployment that nothing leads to, no session is pinned to and no turn waits for."""

        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            deployment = rules.deployment_of(snapshot, name)
            rules.check_revision(deployment, _words(deployment), revision)
            rules.check_deployment_unused(snapshot, deployment)
            for member in deployment.members:
                rules.check_pinned(member.version, await self._pinned(member.version))
            rules.check_finished(deployment, await self._unfinished(name))
            return [(deployment, None)]

        await self._edit(decide, actor)

    async def add_alias(self, name: str, deployment: str, *, actor: str) -> Alias:
        """Adds an alias for a deployment."""
        (made,) = await self._add([Alias(name=name, deployment=deployment, created=self._clock.now())], actor=actor)
        assert isinstance(made, Alias)
        return made

    async def set_alias(self, name: str, deployment: str, *, revision: int | None = None, actor: str) -> Alias:
        """Makes an alias, or switches it to another deployment: every request means the one or the other."""

        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            old = snapshot.aliases.get(name)
            if old is None:
                new = Alias(name=name, deployment=deployment, created=self._clock.now())
                if revision is not None:
                    rules.alias_of(snapshot, name)
                rules.check_new(snapshot, new)
                return [(None, new)]
            rules.check_revision(old, _words(old), revision)
            new = old if old.deployment == deployment else old.switched(deployment)
            rules.check(snapshot, new)
            return [(old, new)]

        (made,) = await self._edit(decide, actor)
        assert isinstance(made, Alias)
        return made

    async def remove_alias(self, name: str, *, revision: int | None = None, actor: str) -> None:
        """Removes an alias; its deployment stays."""

        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            alias = rules.alias_of(snapshot, name)
            rules.check_revision(alias, _words(alias), revision)
            return [(alias, None)]

        await self._edit(decide, actor)

    async def set_adapter(self, adapter: Adapter, *, actor: str) -> Adapter:
        """Adds an adapter, or gives one that is there other files: sessions that began with the earlier ones keep
        them. Whose it is cannot be changed."""

        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            old = snapshot.adapters.get(adapter.id)
            if old is None:
                new = replace(adapter, created=self._clock.now())
                rules.check_new(snapshot, new)
                return [(None, new)]
            rules.check_owner(old, adapter.tenant)
            new = old.with_files(adapter.files[0])
            rules.check(snapshot, new)
            return [(old, new)]

        (made,) = await self._edit(decide, actor)
        assert isinstance(made, Adapter)
        return made

    async def remove_adapter(self, adapter_id: str, *, revision: int | None = None, actor: str) -> None:
        """Removes an adapter: its name is unknown from now on. Turns that were accepted end with it."""

        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            adapter = rules.adapter_of(snapshot, adapter_id)
            rules.check_revision(adapter, _words(adapter), revision)
            return [(adapter, None)]

        await self._edit(decide, actor)

    async def add_price(self, price: Price, *, actor: str) -> Price:
        """Adds a price under a new id. It cannot be changed or removed: another one follows it."""
        (made,) = await self._add([replace(price, id=new_id("price_", self._clock.now()))], actor=actor)
        assert isinstance(made, Price)
        return made

    def _deployed(self, deployment: Deployment, version_id: str) -> Deployment:
        with_one = joined(deployment, version_id, at=deployment.created, rest_s=self._letter_rest_s)
        return replace(with_one, stable=version_id)

    async def _check_never_removed(self, version: Version) -> None:
        """Raises ``Conflict`` when there was a version with this id and other files."""
        for change in await self._store.removals(kind="version", name=version.id):
            before = json.loads(change.before)
            if (before["digest"], before["text"], before["settings"]["dtype"]) != _made_of(version):
                raise Conflict(
                    f"There was a version '{version.id}' with other files, which stored turns name; choose another "
                    "label.",
                    code="version_removed",
                    param="label",
                )

    async def _add(self, records: Sequence[Record], *, actor: str) -> Sequence[Record]:
        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            for record in records:
                rules.check_new(snapshot, record)
                if isinstance(record, Version):
                    await self._check_never_removed(record)
                snapshot = rules.with_record(snapshot, record)
            return [(None, record) for record in records]

        made = await self._edit(decide, actor)
        return [record for record in made if record is not None]

    async def _change(
        self, find: Callable[[Snapshot], R], change: Callable[[R], R], revision: int | None, actor: str
    ) -> R:
        async def decide(snapshot: Snapshot) -> Sequence[Edit]:
            old = find(snapshot)
            rules.check_revision(old, _words(old), revision)
            new = change(old)
            rules.check(snapshot, new)
            return [(old, new)]

        (made,) = await self._edit(decide, actor)
        return made  # type: ignore[return-value]

    async def _edit(
        self, decide: Callable[[Snapshot], Awaitable[Sequence[Edit]]], actor: str
    ) -> Sequence[Record | None]:
        """Writes what ``decide`` makes of the newest snapshot; decides again when the registry has changed meanwhile.
        A change that changes nothing is not written.

        Changes of this process wait for each other: of many at once each would be decided again for each of the others.
        """
        async with self._turn:
            for _ in range(_TRIES):
                snapshot = await self._store.snapshot()
                edits = await decide(snapshot)
                if all(old == new for old, new in edits):
                    return [new for _, new in edits]
                made = await self._writer.write(edits, actor=actor, over=snapshot.revision)
                if made is not None:
                    return made
        raise Conflict("The registry is being changed by many others; try again.", code="registry_busy")


def _words(record: Record) -> str:
    return f"{kind_of(record)} '{name_of(record)}'"


def _made_of(version: Version) -> tuple[str, str, str]:
    return version.digest, version.text, version.settings.dtype
