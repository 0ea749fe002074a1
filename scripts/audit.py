"""Looks at what Axon is built from: is every package pinned and wanted, is any known to be bad, was any withdrawn?

python scripts/audit.py [--offline]

What can be seen without a network is checked always, and a fault in it fails. The package index is asked, for withdrawn
releases and for the advisories that pip-audit reads too, as far as it can be reached and in a few seconds; where it
cannot, that is said and nothing fails: a machine without a network has the same code.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import httpx
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCK, RULES = ROOT / "requirements.lock", ROOT / "scripts" / "audit.toml"
INDEX = "https://pypi.org"
ASK_S = 10.0
_LINK = re.compile(r"<a\s([^>]*)>([^<]+)</a>")
_WITHDRAWN = re.compile(r'data-yanked(?:="([^"]*)")?')
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!+_-]+)")


@dataclass(frozen=True)
class Rules:
    """What is kept by hand, each with its reason."""

    kept: Mapping[str, str] = field(default_factory=dict)
    """Packages that nothing here asks for."""
    bad: Mapping[str, str] = field(default_factory=dict)
    """``name==version`` that must not come back, or a bare name."""
    accepted: Mapping[str, str] = field(default_factory=dict)
    """Ids of advisories that do not concern us."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Packages that are asked for on machines of another kind alone, and so are not in the lock."""


def read_rules(path: Path = RULES) -> Rules:
    return Rules(**tomllib.loads(path.read_text()))


def pins(text: str) -> tuple[dict[str, Version], list[str]]:
    """The lock's packages, and what is wrong with it."""
    found: dict[str, Version] = {}
    faults = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _PIN.fullmatch(line.strip())
        if match is None:
            faults.append(f"not pinned to one version: {line.strip()}")
        elif (name := canonical(match[1])) in found:
            faults.append(f"pinned twice: {match[1]}")
        else:
            found[name] = Version(match[2])
    return found, faults


def asked_for(pyproject: str) -> dict[str, Requirement]:
    """What the project itself names, other than itself."""
    project = tomllib.loads(pyproject)["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    named = {canonical(each.name): each for each in map(Requirement, lines)}
    return {name: each for name, each in named.items() if name != canonical(project.get("name", ""))}


Needs = Mapping[str, Sequence[Requirement]]


def wanted(direct: Mapping[str, Requirement], needs: Needs) -> set[str]:
    """The packages that these need, with the extras they ask for, and those that they need, and so on."""
    found: set[tuple[str, str]] = set()
    due = [(name, extra) for name, each in direct.items() for extra in ("", *each.extras)]
    while due:
        name, extra = due.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for each in needs.get(name, ()):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                due += [(canonical(each.name), more) for more in ("", *each.extras)]
    return {name for name, _ in found}


def installed_needs() -> Needs:
    """What each installed package says that it needs."""
    return {canonical(each.metadata["Name"]): list(map(Requirement, each.requires or ())) for each in distributions()}


def offline(locked: Mapping[str, Version], direct: Mapping[str, Requirement], needs: Needs, rules: Rules) -> list[str]:
    """What is wrong, as far as can be seen from here."""
    missing = direct.keys() - locked.keys() - rules.elsewhere.keys()
    faults = [f"asked for and not locked: {name}" for name in sorted(missing)]
    faults += [
        f"locked at {locked[name]}, asked for as {each}"
        for name, each in sorted(direct.items())
        if name in locked and not each.specifier.contains(locked[name], prereleases=True)
    ]
    unwanted = locked.keys() - wanted(direct, needs) - rules.kept.keys()
    faults += [f"locked and wanted by nothing: {name}" for name in sorted(unwanted)]
    faults += [f"kept without need: {name} is not locked" for name in sorted(rules.kept.keys() - locked.keys())]
    for name, version in sorted(locked.items()):
        if reason := rules.bad.get(f"{name}=={version}") or rules.bad.get(name):
            faults.append(f"known to be bad: {name} {version}: {reason}")
    return faults


def withdrawn(page: str, name: str, version: Version) -> str | None:
    """By the index's page: why a version was withdrawn, None where it was not. ``LookupError``: it is not there."""
    reasons = [_reason(attributes) for attributes, file in _LINK.findall(page) if _is_of(file.strip(), name, version)]
    if not reasons:
        raise LookupError(f"{name} {version}")
    return None if None in reasons else reasons[0]


def _reason(attributes: str) -> str | None:
    match = _WITHDRAWN.search(attributes)
    return (match[1] or "no reason given") if match else None


def _is_of(file: str, name: str, version: Version) -> bool:
    if str(version) not in file:
        return False  # most of a long page
    try:
        found = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
    except ValueError:
        return False
    return (found[0], found[1]) == (name, version)


def holes(told: Mapping[str, Any], accepted: Mapping[str, str]) -> list[str]:
    """Advisories about a release, as the index tells them: the same that pip-audit reads."""
    return [
        f"{each['id']}: {each.get('summary') or 'no summary'} (mended in {', '.join(each['fixed_in']) or 'no release'})"
        for each in told.get("vulnerabilities", ())
        if not each.get("withdrawn") and not {each["id"], *each.get("aliases", ())} & accepted.keys()
    ]


@dataclass
class Answers:
    """What the index said."""

    faults: list[str] = field(default_factory=list)
    num_seen: int = 0
    """Packages whose page was seen."""
    num_advised: int = 0
    """Packages whose advisories were told."""


def ask_index(locked: Mapping[str, Version], accepted: Mapping[str, str]) -> Answers:
    """Withdrawn and vulnerable versions, as far as the index can be reached."""
    answers = Answers()

    def ask(http: httpx.Client, name: str, version: Version) -> None:
        with suppress(httpx.HTTPError, LookupError):
            reply = http.get(f"{INDEX}/simple/{name}/").raise_for_status()
            reason = withdrawn(reply.text, name, version)
            answers.num_seen += 1
            if reason:
                answers.faults.append(f"withdrawn from the index: {name} {version}: {reason}")
        if advises:
            with suppress(httpx.HTTPError, ValueError):
                told = http.get(f"{INDEX}/pypi/{name}/{version}/json").raise_for_status().json()
                answers.num_advised += 1
                answers.faults += [f"vulnerable: {name} {version}: {each}" for each in holes(told, accepted)]

    with httpx.Client(timeout=ASK_S, follow_redirects=True) as http, ThreadPoolExecutor(16) as threads:
        try:
            advises = http.get(f"{INDEX}/pypi/pip/json").status_code == 200  # not every mirror does
        except httpx.HTTPError:
            return answers
        for name, version in locked.items():
            threads.submit(ask, http, name, version)
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description="Looks at what Axon is built from.")
    parser.add_argument("--offline", action="store_true", help="ask nobody")
    offline_only = parser.parse_args().offline
    rules = read_rules()
    locked, faults = pins(LOCK.read_text())
    faults += offline(locked, asked_for((ROOT / "pyproject.toml").read_text()), installed_needs(), rules)
    answers = Answers() if offline_only else ask_index(locked, rules.accepted)
    faults += answers.faults
    print(f"audit: {len(locked)} packages; the index told {answers.num_seen} of them, advisories {answers.num_advised}")
    if answers.num_advised < len(locked):
        print("audit: NOT asked everything: advisories need an index that tells them, and a network", file=sys.stderr)
    for fault in faults:
        print(f"audit: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
