"""Recommended replicas and the workers that somebody else has started for them: who is whose. Pure.

A launcher that only recommends knows no worker's name, so workers are counted: the first recommendation of a group has
its first worker. A recommendation without a worker has not been followed yet.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from axon.domain.fleet.replica import Group, Launched
from axon.domain.presence import Presence


def with_workers(recommended: Sequence[Launched], presences: Sequence[Presence]) -> Sequence[Launched]:
    """The recommendations, each with the name of a worker of its version and pool, as far as there are so many. Workers
    that take jobs come first."""
    found: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for each in sorted(presences, key=lambda each: (each.draining, each.worker), reverse=True):
        found[each.deployment.name, each.deployment.version, each.pool].append(each.worker)
    return [
        replace(each, worker=workers.pop()) if (workers := found[_key(each.name.group, each)]) else each
        for each in sorted(recommended, key=lambda each: each.name)
    ]


def _key(group: Group, launched: Launched) -> tuple[str, str, str]:
    return group.deployment, launched.spec.version, group.pool
