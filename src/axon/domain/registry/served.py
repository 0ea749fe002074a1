"""A registered version as it is served, and which version of a deployment a worker is to serve. Pure functions."""

from collections import Counter
from collections.abc import Iterable

from axon.domain.model.served_version import ServedVersion
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.rollout import WHOLE
from axon.domain.registry.version import Version

RUNNING = (MemberState.REGISTERED, MemberState.READY, MemberState.DRAINING)
"""States of versions that workers serve."""


def served_of(version: Version, deployment: Deployment) -> ServedVersion:
    """A registered version, as the workers of a deployment serve it."""
    return ServedVersion(
        name=deployment.name,
        version=version.id,
        text=version.text,
        max_model_len=version.max_model_len,
        created=version.created,
        temperature=version.advice.temperature,
        top_p=version.advice.top_p,
        top_k=version.advice.top_k,
        repetition_penalty=version.advice.repetition_penalty,
        reasons=version.reasons,
        embeds=version.embeds,
        call_format=dict(version.settings.more).get("call_format", "").replace("auto", ""),
    )


def version_to_serve(deployment: Deployment, served: Iterable[str]) -> str:
    """Id of the version that one more worker of a deployment is to serve; empty if there is none.

    ``served`` are the versions of the other workers, one for each. A version without a worker comes first, the stable
    one before the others; then the one with the fewest workers for its part of the new sessions.
    """
    counts = Counter(served)
    running = [member.version for member in deployment.members if member.state in RUNNING]
    total = sum(counts[version] for version in running) + 1
    missing = {version: _part(deployment, version) * total - counts[version] for version in running}
    unserved = sorted((each for each in running if not counts[each]), key=lambda each: each != deployment.stable)
    order = unserved or sorted(running, key=lambda each: -missing[each])
    return order[0] if order else ""


def _part(deployment: Deployment, version: str) -> float:
    """The part of new sessions that begin on a version, 0 to 1."""
    share = deployment.rollout.share / WHOLE if deployment.rollout else 0.0
    if deployment.rollout and version == deployment.rollout.new and version != deployment.stable:
        return share
    return 1.0 - share if version == deployment.stable else 0.0
