"""Which letter a version gets in the lanes of a deployment, and how one joins and leaves. Pure functions."""

from dataclasses import replace

from axon.domain.registry.deployment import LETTERS, Deployment, FreedLetter, Member
from axon.errors import Conflict

GIVEN = ("", *LETTERS[1:])
"""What stands in the names of lanes, in the order in which it is given: the first version's lanes have no letter."""


def free_letter(deployment: Deployment, *, at: float, rest_s: float) -> str | None:
    """The letter that a new version of the deployment gets; None when none is free.

    A letter whose version has left rests for ``rest_s`` seconds, one turn's time, and the deployment's patience with
    cold starts: until then a turn of that version may wait in its lanes.
    """
    taken = {member.letter for member in deployment.members}
    rest_s += deployment.cold_patience_s
    resting = {freed.letter for freed in deployment.freed if freed.at + rest_s > at}
    return next((letter for letter in GIVEN if letter not in taken | resting), None)


def joined(deployment: Deployment, version: str, *, at: float, rest_s: float) -> Deployment:
    """The deployment with one more version; raises ``Conflict`` when it is there already or no letter is free."""
    if deployment.member(version) is not None:
        raise Conflict(f"The deployment '{deployment.name}' has the version '{version}'.", code="version_in_use")
    letter = free_letter(deployment, at=at, rest_s=rest_s)
    if letter is None:
        raise Conflict(_none_free(deployment, rest_s + deployment.cold_patience_s), code="too_many_versions")
    freed = tuple(each for each in deployment.freed if each.letter != letter)
    return replace(deployment, members=(*deployment.members, _member(version, letter, at)), freed=freed)


def left(deployment: Deployment, version: str, *, at: float) -> Deployment:
    """The deployment without a version, whose letter rests from now on. Whoever calls it has seen its lanes empty."""
    member = deployment.member(version)
    assert member is not None, f"{version} is no version of {deployment.name}"
    members = tuple(each for each in deployment.members if each is not member)
    return replace(deployment, members=members, freed=(*deployment.freed, FreedLetter(letter=member.letter, at=at)))


def _member(version: str, letter: str, at: float) -> Member:
    return Member(version=version, letter=letter, since=at)


def _none_free(deployment: Deployment, rest_s: float) -> str:
    if len(deployment.members) >= len(GIVEN):
        versions = ", ".join(member.version for member in deployment.members)
        return (
            f"The deployment '{deployment.name}' has {len(GIVEN)} versions, as many as it can: {versions}. "
            "Wait until one has drained and is removed."
        )
    return (
        f"A version of the deployment '{deployment.name}' was removed less than {rest_s:g} s ago, and its last turns "
        "may still wait; try again later."
    )
