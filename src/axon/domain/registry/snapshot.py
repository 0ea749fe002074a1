"""The whole registry as one value, and what a name means in it. Functions of their arguments alone."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from axon.domain.registry.adapter import Adapter, adapter_id
from axon.domain.registry.deployment import Alias, Deployment, MemberState
from axon.domain.registry.model import Model
from axon.domain.registry.price import Price
from axon.domain.registry.rollout import bucket_of
from axon.domain.registry.version import Version, version_id
from axon.errors import Conflict, Unavailable

_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that the registry holds at one revision. A holder never goes back to a lower one."""

    revision: int = 0
    models: Mapping[str, Model] = field(default_factory=dict)
    versions: Mapping[str, Version] = field(default_factory=dict)
    """By id."""
    deployments: Mapping[str, Deployment] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    prices: tuple[Price, ...] = ()
    adapters: Mapping[str, Adapter] = field(default_factory=dict)
    """By id."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a request's ``model`` means."""

    deployment: Deployment
    version: str = ""
    """Id of the version that it asks for; empty for whichever the session is pinned to."""


def find(snapshot: Snapshot, name: str) -> Named | None:
    """The deployment that a name means: its own name, an alias, or either with ``@`` and a version's label."""
    if deployment := _deployment(snapshot, name):
        return Named(deployment)
    base, at, label = name.rpartition("@")
    if not at or (deployment := _deployment(snapshot, base)) is None:
        return None
    version = version_id(deployment.model, label)
    return Named(deployment, version) if deployment.member(version) else None


def _deployment(snapshot: Snapshot, name: str) -> Deployment | None:
    alias = snapshot.aliases.get(name)
    return snapshot.deployments.get(alias.deployment if alias else name)


def adapter_of(snapshot: Snapshot, model: str, label: str, *, tenant: str) -> Adapter | None:
    """A model's adapter; None if there is none of this name that the tenant may know of."""
    found = snapshot.adapters.get(adapter_id(model, label))
    return found if found is not None and found.is_for(tenant) else None


def first_version(deployment: Deployment, key: str, *, is_fresh: bool, gone: Collection[str] = ()) -> str:
    """Id of the version that a new session begins on.

    ``key`` is the session's pin key, or the job's id for a turn that is its own session. A view that is not fresh may
    miss that a rollout was taken back, so it begins sessions on the stable version only. So does every view while the
    new version is among those that are ``gone``: no worker has had them for longer than the deployment's patience.
    """
    rollout = deployment.rollout
    if rollout is None or not is_fresh or rollout.new in gone:
        return deployment.stable
    member = deployment.member(rollout.new)
    if member is None or member.state is not MemberState.READY:
        return deployment.stable
    return rollout.new if bucket_of(rollout.id, key) < rollout.share else deployment.stable


def named_version(deployment: Deployment, version: str) -> str:
    """The version that a new session asks for by its id, if sessions may begin on it; raises ``Conflict``."""
    member = deployment.member(version)
    if version == deployment.stable or (member is not None and member.state is MemberState.READY):
        return version
    state = member.state if member else "removed"
    raise Conflict(
        f"No session begins on {version}, which is {state} in '{deployment.name}'; leave out '@' and its label.",
        code="version_not_ready",
        param="model",
    )


def check_open(deployment: Deployment | None, version: str, *, is_awaited: bool) -> None:
    """Raises ``Unavailable`` for a turn that must not be accepted any more, though its version was right when its
    prompt was rendered: the version is closed or removed, or nobody who removes it would wait for this process.

    A client that asks again is answered by the version that its session is on then.
    """
    member = deployment.member(version) if deployment else None
    if member is None or member.state is MemberState.CLOSED:
        message = f"The version {version} was closed while this request was prepared; ask again."
        raise Unavailable(message, code="version_closed", retry_after_s=_AGAIN_S)
    if not is_awaited:
        message = "This gateway has lost sight of the registry and cannot begin a turn; ask again."
        raise Unavailable(message, code="registry_unavailable", retry_after_s=_AGAIN_S)


def price_of(snapshot: Snapshot, version: str, *, at: float) -> Price | None:
    """The price that holds for a version at a time: its own, else its model's; the latest that has begun."""
    model = version.rpartition("@")[0]
    begun = [price for price in snapshot.prices if price.since <= at and price.model == model]
    own = [price for price in begun if price.version == version]
    return max(own or [price for price in begun if not price.version], key=lambda price: price.since, default=None)
