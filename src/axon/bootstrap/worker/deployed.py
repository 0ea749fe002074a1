"""The version of a registered deployment that this worker is to serve, and its settings and files. Starts no engine."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog

from axon.bootstrap.models.fetching import opened_version
from axon.bootstrap.models.model import Model, OnProgress, find_draft, load_text, prepare_model
from axon.bootstrap.models.version_settings import settings_of
from axon.bootstrap.models.vllm import require_vllm
from axon.bootstrap.process import Process
from axon.bootstrap.registry import make_catalog, make_follower
from axon.bootstrap.services import Services
from axon.domain.model.served_version import ServedVersion
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.served import RUNNING, served_of, version_to_serve
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Version, version_id
from axon.engine.protocol.messages import Ready
from axon.errors import Conflict, Misconfigured
from axon.ports.live import Presences
from axon.registry.catalog import Catalog
from axon.registry.follower import RegistryFollower
from axon.runtime.lifecycle import Lifecycle
from axon.settings import Settings
from axon.weights.progress import Progress

Key = tuple[str, str]
"""A deployment's name and the id of one of its versions."""
_LOOK_S = 0.25

_logger = structlog.get_logger("axon.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """What a worker of a registered deployment serves."""

    deployment: Deployment
    version: Version
    settings: Settings
    """The process's settings, with those of the version in their place."""
    draft: Version | None = None
    """The version that drafts for it."""

    @property
    def letter(self) -> str:
        """The version's letter in the names of lanes."""
        member = self.deployment.member(self.version.id)
        return member.letter if member else ""

    @property
    def served(self) -> ServedVersion:
        return served_of(self.version, self.deployment)

    async def model(self, on_progress: OnProgress, stack: AsyncExitStack) -> Model:
        """The version's files, fetched and checked where they are not here yet; the stack lets them go. Raises
        ``Misconfigured`` where vLLM is to run it and this machine has none."""
        if self.settings.engine.kind == "echo":
            return await asyncio.to_thread(prepare_model, self.settings, on_progress)

        await asyncio.to_thread(require_vllm, self.settings.engine)

        def tell(progress: Progress) -> None:
            on_progress("Fetching the model", progress.done_bytes / max(1, progress.total_bytes))

        opening = opened_version(self.settings, self.version, on_progress=tell)
        folder = await stack.enter_async_context(opening)
        text = await asyncio.to_thread(load_text, folder)
        penalty = self.version.advice.repetition_penalty
        draft = await asyncio.to_thread(find_draft, self.settings, on_progress)
        if self.draft is not None:
            draft = await stack.enter_async_context(opened_version(self.settings, self.draft, on_progress=tell))
        return Model(folder=folder, text=text, repetition_penalty=penalty, embeds=self.version.embeds, draft=draft)

    def check_text(self, model: Model) -> None:
        """Raises ``Misconfigured`` if the files are not those that were registered."""
        if model.text.mark != self.version.text:
            raise Misconfigured(
                f"The tokenizer or template at {self.version.source} is not that of {self.version.id} as it was "
                "registered. Restore the files, or register them as another version."
            )


class Following:
    """The tie of a worker to the registry: which version it serves, and whether that is still run."""

    is_over = False
    """Whether its version is not run any more."""

    def __init__(self, deployed: Deployed, registry: RegistryFollower, catalog: Catalog, lifecycle: Lifecycle) -> None:
        self.deployed = deployed
        self._registry, self._catalog, self._lifecycle = registry, catalog, lifecycle
        self.parts = registry.run, self._run

    async def served(self, engine: Ready, worker: str) -> ServedVersion:
        """What the worker announces. Records the kernel of the version's first worker; raises ``Misconfigured`` if
        this machine has another kernel, or room for a shorter context only."""
        version = self.deployed.version
        if engine.max_model_len < version.max_model_len:
            raise Misconfigured(
                f"{version.id} is registered with a context of {version.max_model_len} tokens, and this engine has "
                f"room for {engine.max_model_len}. Give it more memory for KV blocks (engine.kv_memory_bytes)."
            )
        try:
            await self._catalog.record_kernel(version.id, engine.kernel, actor=f"worker {worker}")
        except Conflict as error:
            raise Misconfigured(error.message) from error
        return self.deployed.served

    def letter_of(self, version: str) -> str | None:
        """The letter of a version of the deployment; None for one that it does not have."""
        deployment = self._registry.snapshot.deployments.get(self.deployed.deployment.name)
        member = deployment.member(version) if deployment else None
        return member.letter if member else None

    async def _run(self) -> None:
        """Stops the process, which then begins again, when the version has left its deployment."""
        while True:
            if not self._is_run():
                break
            await asyncio.sleep(_LOOK_S)
        self.is_over = True
        name, version = self.deployed.deployment.name, self.deployed.version.id
        _logger.info("worker.version_over", deployment=name, version=version)
        self._lifecycle.stop()
        await asyncio.Event().wait()

    def _is_run(self) -> bool:
        """Whether the version is a member of its deployment. One that failed or is closed still has its workers: a
        gateway that has not heard of it yet may have accepted a turn."""
        return self.letter_of(self.deployed.version.id) is not None


async def open_following(process: Process, services: Services) -> Following:
    """Reads the registry and finds what this worker is to serve."""
    settings, clock, store = process.settings, process.clock, services.store
    registry = make_follower(store, services.live, clock)
    await registry.open()
    deployed = await find_deployed(settings, registry.snapshot, services.live.presences)
    return Following(
        deployed, registry, make_catalog(settings, store, clock, services.live, _unasked), process.lifecycle
    )


class AllVersions:
    """Every version that the registry's deployments run, for a process that serves all of them by itself.

    A version of a deployment is named by the deployment's name and its own id.
    """

    def __init__(self, process: Process, registry: RegistryFollower, catalog: Catalog) -> None:
        self._process, self._registry, self._catalog = process, registry, catalog
        self.run = registry.run
        """Follows the registry, until cancelled."""

    @property
    def revision(self) -> int:
        """The registry's revision in this process's view."""
        return self._registry.snapshot.revision

    @property
    def deployments(self) -> Collection[str]:
        """Names of all deployments."""
        return self._registry.snapshot.deployments.keys()

    def wanted(self) -> Sequence[Key]:
        """The versions that are to be served."""
        found = self._registry.snapshot.deployments.values()
        return [(each.name, member.version) for each in found for member in each.members if member.state in RUNNING]

    def has(self, key: Key) -> bool:
        """Whether a version is one of its deployment's. One that failed or is closed still has its worker: a turn that
        was accepted before may be under way."""
        deployment = self._registry.snapshot.deployments.get(key[0])
        return deployment is not None and deployment.member(key[1]) is not None

    def following(self, key: Key) -> Following:
        """What a worker of a wanted version needs."""
        process, snapshot = self._process, self._registry.snapshot
        deployed = _deployed(process.settings, snapshot, snapshot.deployments[key[0]], key[1])
        return Following(deployed, self._registry, self._catalog, process.lifecycle)


async def open_all_versions(process: Process, services: Services) -> AllVersions:
    """Reads the registry."""
    settings, clock, store = process.settings, process.clock, services.store
    registry = make_follower(store, services.live, clock)
    await registry.open()
    return AllVersions(process, registry, make_catalog(settings, store, clock, services.live, _unasked))


async def _unasked(version: str) -> int:
    """Counts nothing: a worker removes no version."""
    return 0


def _deployed(settings: Settings, snapshot: Snapshot, deployment: Deployment, version: str) -> Deployed:
    record = snapshot.versions[version]
    own = settings_of(settings, record, deployment.name)
    draft = snapshot.versions[record.settings.draft] if record.settings.draft else None
    return Deployed(deployment=deployment, version=record, settings=own, draft=draft)


async def find_deployed(settings: Settings, snapshot: Snapshot, presences: Presences) -> Deployed:
    """What ``worker.deployment`` and ``worker.version`` name; raises ``Misconfigured`` if there is no such thing."""
    name, label = settings.worker.deployment, settings.worker.version
    deployment = snapshot.deployments.get(name)
    if deployment is None:
        known = ", ".join(sorted(snapshot.deployments)) or "none"
        raise Misconfigured(f"There is no deployment {name}; there are: {known}. `axon deployments create` makes one.")
    if label:
        wanted = version_id(deployment.model, label)
        member = deployment.member(wanted)
        if member is None or member.state not in RUNNING:
            raise Misconfigured(f"The deployment {name} does not run the version {label}.")
    else:
        others = await presences.all(name)
        wanted = version_to_serve(deployment, [each.deployment.version for each in others if not each.draining])
        if not wanted:
            raise Misconfigured(f"The deployment {name} has no version to run yet; add one to it.")
    return _deployed(settings, snapshot, deployment, wanted)
