"""Records of a small registry: a model ``small`` with versions, and its deployment."""

from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.rollout import Rollout, RolloutState
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Version


def version(label: str = "v1", model: str = "small") -> Version:
    return Version(
        model=model,
        label=label,
        source=f"/models/{model}-{label}",
        digest=f"digest-{label}",
        text="text",
        max_model_len=2048,
        created=1.0,
    )


def rollout(*, share: int = 5000, state: RolloutState = RolloutState.RUNNING) -> Rollout:
    return Rollout(id="ro_1", old="small@v1", new="small@v2", steps=(share,), bake_s=60.0, state=state, began=10.0)


def deployment(*, going: Rollout | None = None, name: str = "small") -> Deployment:
    members = (
        Member(version="small@v1", state=MemberState.READY),
        Member(version="small@v2", letter="b", state=MemberState.READY),
    )
    return Deployment(name=name, model="small", members=members, stable="small@v1", rollout=going, created=1.0)


def snapshot(*deployments: Deployment) -> Snapshot:
    versions = {each.id: each for each in (version("v1"), version("v2"))}
    return Snapshot(revision=7, versions=versions, deployments={each.name: each for each in deployments})


async def nobody_pinned(version: str) -> int:
    return 0
