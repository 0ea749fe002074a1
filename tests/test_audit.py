"""The audit of dependencies finds what it is for, and says nothing where there is nothing."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "audit.py"


@pytest.fixture(scope="module")
def audit() -> Any:
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module
    spec.loader.exec_module(module)
    return module


LOCKED = {"axe": Version("1.2"), "helve": Version("3.0")}
DIRECT = {"axe": Requirement("axe[long]>=1")}
NEEDS = {"axe": [Requirement('helve; extra == "long"'), Requirement('gold; extra == "show"')]}


def test_a_lock_that_is_whole_has_no_faults(audit: Any) -> None:
    assert audit.pins("# a lock\naxe==1.2\nHelve==3.0\n") == (LOCKED, [])
    assert audit.offline(LOCKED, DIRECT, NEEDS, audit.Rules()) == []


def test_the_project_does_not_ask_for_itself_and_what_is_needed_elsewhere_alone_need_not_be_locked(audit: Any) -> None:
    asked = audit.asked_for(
        '[project]\nname = "Axe_shop"\ndependencies = ["axe"]\n'
        '[project.optional-dependencies]\nall = ["axe-shop[long]", "forge"]\n'
    )
    assert asked.keys() == {"axe", "forge"}
    locked = {"axe": Version("1.2")}
    assert audit.offline(locked, asked, {}, audit.Rules()) == ["asked for and not locked: forge"]
    assert audit.offline(locked, asked, {}, audit.Rules(elsewhere={"forge": "smiths have it"})) == []


@pytest.mark.parametrize("line", ["axe", "axe>=1", "axe==1.*", "axe @ https://example.org/axe.whl", "-e .", "-r more"])
def test_what_is_not_pinned_to_one_version_is_found(audit: Any, line: str) -> None:
    assert audit.pins(line)[1]


def test_a_package_that_is_pinned_twice_is_found(audit: Any) -> None:
    assert audit.pins("axe==1.2\nAxe==1.3")[1] == ["pinned twice: Axe"]


def test_what_is_missing_unwanted_out_of_range_or_bad_is_found(audit: Any) -> None:
    rules = audit.Rules

    def faults(locked: dict[str, Version], direct: dict[str, Requirement] = DIRECT, kept: Any = None) -> list[str]:
        found: list[str] = audit.offline(locked, direct, NEEDS, kept or rules())
        return found

    assert faults({}) == ["asked for and not locked: axe"]
    assert faults(LOCKED, {"axe": Requirement("axe")}) == ["locked and wanted by nothing: helve"]
    assert faults(LOCKED, {"axe": Requirement("axe")}, rules(kept={"helve": "by hand"})) == []
    assert faults(LOCKED, DIRECT, rules(kept={"saw": "by hand"})) == ["kept without need: saw is not locked"]
    assert faults(LOCKED, {"axe": Requirement("axe[long]>=2")}) == ["locked at 1.2, asked for as axe[long]>=2"]
    assert faults(LOCKED, DIRECT, rules(bad={"helve==3.0": "splinters"})) == ["known to be bad: helve 3.0: splinters"]
    assert faults(LOCKED, DIRECT, rules(bad={"helve==2.0": "splinters"})) == []


PAGE = """
<a href="x" data-yanked="broken">axe-1.2.tar.gz</a><br/>
<a href="x" data-yanked="broken">axe-1.2-py3-none-any.whl</a>
<a href="x" data-requires-python="&gt;=3.10">axe-1.3-py3-none-any.whl</a>
<a href="x" data-yanked>axe-1.20.tar.gz</a>
<a href="x" data-yanked="one file only">axe-1.4.tar.gz</a>
<a href="x">axe-1.4-py3-none-any.whl</a>
"""


def test_a_release_that_was_withdrawn_is_told_from_one_that_was_not(audit: Any) -> None:
    told = {each: audit.withdrawn(PAGE, "axe", Version(each)) for each in ("1.2", "1.3", "1.20", "1.4")}
    assert told == {"1.2": "broken", "1.3": None, "1.20": "no reason given", "1.4": None}
    with pytest.raises(LookupError):
        audit.withdrawn(PAGE, "axe", Version("9"))


def test_an_advisory_counts_unless_it_was_accepted_or_taken_back(audit: Any) -> None:
    hole = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fixed_in": ["1.3"], "summary": "it cuts", "withdrawn": None}
    assert audit.holes({"vulnerabilities": [hole]}, {}) == ["PYSEC-1: it cuts (mended in 1.3)"]
    assert audit.holes({"vulnerabilities": [hole]}, {"CVE-1": "we never swing it"}) == []
    assert audit.holes({"vulnerabilities": [{**hole, "withdrawn": "2026-01-01"}]}, {}) == []
    assert audit.holes({}, {}) == []


def test_the_projects_own_lock_has_no_faults(audit: Any) -> None:
    locked, faults = audit.pins(audit.LOCK.read_text())
    asked = audit.asked_for((SCRIPT.parents[1] / "pyproject.toml").read_text())
    assert faults + audit.offline(locked, asked, audit.installed_needs(), audit.read_rules()) == []
