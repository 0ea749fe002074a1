"""A deployment's rollout as the admin API and the command line show it: plain JSON. Knows neither of the two."""

from collections.abc import Mapping
from dataclasses import asdict

from axon.domain.registry.deployment import Deployment
from axon.domain.registry.rollout import WHOLE, Rollout
from axon.domain.registry.samples import Observed, Samples, median_of
from axon.errors import InvalidInput, NotFound
from axon.registry.facts import Facts

_PERCENT = WHOLE // 100


def rollout_facts(deployment: Deployment) -> Facts:
    """The JSON of the present or last rollout, with shares in percent; raises ``NotFound`` when there was none."""
    rollout = rollout_of(deployment)
    return {
        "id": rollout.id,
        "object": "rollout",
        "deployment": deployment.name,
        "state": str(rollout.state),
        "old": rollout.old,
        "new": rollout.new,
        "stable": deployment.stable,
        "share": rollout.share / _PERCENT,
        "steps": [share / _PERCENT for share in rollout.steps],
        "step": rollout.step,
        "bake_s": rollout.bake_s,
        "reason": rollout.reason,
        "golden": [asdict(golden) for golden in rollout.golden],
        "tolerance": asdict(rollout.tolerance),
        "versions": [
            {"id": member.version, "state": str(member.state), "since": int(member.since)}
            for member in deployment.members
        ],
        "began_at": int(rollout.began),
        "stepped_at": int(rollout.stepped),
        "revision": deployment.revision,
    }


def figure_facts(rollout: Rollout, observed: Mapping[str, Observed]) -> Facts:
    """The JSON of what the gateways, by their names, have observed of a rollout's two versions together."""
    seen = sum(observed.values(), Observed())
    return {
        "id": rollout.id,
        "object": "rollout.figures",
        "gateways": len(observed),
        "old": _samples(rollout.old, seen.old),
        "new": _samples(rollout.new, seen.new),
    }


def _samples(version: str, samples: Samples) -> Facts:
    return {
        "version": version,
        "turns": samples.begun,
        "errors": samples.errors,
        "refused": samples.refused,
        "mute": samples.mute,
        "ttft_s": median_of(samples.ttft),
        "itl_s": median_of(samples.itl),
    }


def rollout_of(deployment: Deployment) -> Rollout:
    """The present or last rollout; raises ``NotFound`` when there was none."""
    if deployment.rollout is None:
        raise NotFound(f"The deployment '{deployment.name}' never had a rollout.", code="rollout_not_found")
    return deployment.rollout


def shares_of(percents: list[float]) -> tuple[int, ...]:
    """Shares in hundredths of a percent; raises ``InvalidInput`` for what is no percentage, or has more than two
    decimals."""
    if not all(0 < percent <= 100 for percent in percents):
        raise InvalidInput("Each step must be above 0 and at most 100 %.", param="steps")
    shares = tuple(round(percent * _PERCENT) for percent in percents)
    if any(abs(share - percent * _PERCENT) > 1e-6 for share, percent in zip(shares, percents, strict=True)):
        raise InvalidInput("A step is a percentage with at most two decimals, such as 0.25.", param="steps")
    return shares
