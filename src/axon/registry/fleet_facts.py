"""The report on the fleet as the admin API and ``axon fleet status --json`` show it. Pure."""

from dataclasses import asdict
from typing import Any

from axon.domain.fleet.reconcile import GroupState
from axon.domain.fleet.status import FleetStatus, by_deployment
from axon.registry.facts import Facts

NO_REPORT = (
    "No control has reported on the fleet within the last minute: none leads, or control.launcher is 'none' and you "
    "start the workers yourself."
)


def fleet_facts(status: FleetStatus, *, now: float) -> Facts:
    """The report as an object."""
    return {
        "object": "fleet",
        "at": status.at,
        "age_s": round(max(0.0, now - status.at), 3),
        "leader": status.leader,
        "term": status.term,
        "launcher": status.launcher,
        "held": status.held,
        "problem": status.problem,
        "deployments": [
            {"id": name, **_sums(groups), "groups": [_group(each) for each in groups]}
            for name, groups in by_deployment(status.groups).items()
        ],
        "num_replicas": status.num_replicas,
        "replicas": [{"id": each.name, **_without(asdict(each), "name")} for each in status.replicas],
        "decisions": [asdict(each) for each in status.decisions],
    }


def _sums(groups: tuple[GroupState, ...]) -> dict[str, int]:
    names = ("wanted", "starting", "ready", "draining")
    return {name: sum(getattr(each, name) for each in groups) for name in names}


def _group(each: GroupState) -> dict[str, Any]:
    group = each.group
    return {
        "id": str(group),
        "letter": group.letter,
        "pool": group.pool,
        **_sums((each,)),
        "reason": each.reason,
        "held": each.held,
    }


def _without(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != name}
