"""``axon tenants`` and ``axon plans``: made, shown, changed and removed, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.console.program import Axon


def test_tenants_and_plans_are_made_shown_changed_and_removed(axon: Axon) -> None:
    limits = ["--limit", "weight=4", "--limit", "models=small,large", "--limit", "highest_tier=flex"]
    assert axon("plans", "create", "pro", *limits).returncode == 0
    assert "axon tenants create" in axon("tenants", "list").stderr
    _, plan = json.loads(axon("plans", "list", "--json").stdout)  # behind the default one
    set_ = {"weight": 4.0, "highest_tier": "flex", "models": ["small", "large"]}
    assert plan == {"id": "pro", "object": "plan", "limits": set_}
    assert json.loads(axon("plans", "show", "pro", "--json").stdout) == plan
    assert "small,large" in axon("plans", "show", "pro").stdout
    assert "models=small,large" in axon("plans", "list").stdout
    made = axon("tenants", "create", "acme", "--name", "Acme", "--plan", "pro", "--limit", "concurrent=3", "--json")
    assert json.loads(made.stdout)["limits"] == {"concurrent": 3}
    shown = json.loads(axon("tenants", "show", "acme", "--json").stdout)
    assert (shown["place"], shown["terms"]["weight"], shown["terms"]["concurrent"]) == (0, 4.0, 3)
    assert shown["plan_limits"] == set_
    _, table, stored = axon("tenants", "show", "acme").stdout.split("\n\n")
    held = {line.split()[0]: line.split()[1:] for line in table.splitlines()}
    assert stored == "stored: 0 bytes in 0 objects\n"
    assert held["weight"] == ["-", "4", "4"]
    assert held["tokens_per_day"] == ["-", "-", "no", "limit"]
    changed = axon("tenants", "change", "acme", "--limit", "weight=2", "--unset", "concurrent", "--json")
    assert (json.loads(changed.stdout)["limits"], json.loads(changed.stdout)["name"]) == ({"weight": 2.0}, "Acme")
    axon("plans", "change", "pro", "--limit", "queued=7", "--unset", "weight")
    assert json.loads(axon("tenants", "show", "acme", "--json").stdout)["terms"]["queued"] == 7
    assert axon("tenants", "suspend", "acme").returncode == 0
    assert "suspended" in axon("tenants", "list").stdout
    assert axon("tenants", "resume", "acme").returncode == 0
    assert json.loads(axon("tenants", "list", "--json").stdout)[0]["status"] == "active"
    assert axon("plans", "remove", "pro").returncode == 1
    assert axon("tenants", "remove", "acme").returncode == 0
    for again in (("tenants", "create", "acme"), ("keys", "create", "--tenant", "acme")):
        refused = axon(*again)
        assert (refused.returncode, refused.stdout) == (1, ""), "what acme had would be read by whoever gets its id"
        assert "There was a tenant acme" in refused.stderr
    assert axon("plans", "remove", "pro").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tenants", "create", "acme", "--limit", "wieght=2"], "Did you mean weight?"),
        (["tenants", "create", "acme", "--limit", "weight"], "write NAME=VALUE"),
        (["tenants", "create", "acme", "--limit", "weight=much"], "--limit weight=much: it must be a number"),
        (["tenants", "create", "acme", "--limit", "weight=0"], "--limit weight=0: it must be from 0.001 to 1000"),
        (["tenants", "create", "acme", "--limit", "weight=1", "--limit", "weight=2"], "twice"),
        (["tenants", "create", "acme", "--limit", "kv_share=0"], "more than 0 and at most 1"),
        (["tenants", "create", "acme", "--limit", "kv_share=nan"], "more than 0 and at most 1"),
        (["tenants", "create", "acme", "--limit", "reserved=1.5"], "from 0 to 1, not 1.5"),
        (["tenants", "create", "acme", "--limit", "requests_per_minute=nan"], "it must be 0 or more, not nan"),
        (["tenants", "create", "acme", "--limit", "requests_per_minute=-1"], "it must be 0 or more, not -1"),
        (["tenants", "create", "acme", "--limit", "tokens_per_minute=inf"], "it must be at most 9007199254740992"),
        (["tenants", "create", "acme", "--limit", "concurrent=1.5"], "it must be a whole number"),
        (["tenants", "create", "acme", "--limit", "pool=a b/c"], "small letters"),
        (["tenants", "create", "acme", "--limit", "highest_tier=urgent"], "flex, default, priority"),
        (["tenants", "create", "acme", "--name", "a\nb"], "--name 'a\\nb': it must be text"),
        (["tenants", "create", "a b"], "ID 'a b': it must have 1 to 64 letters, digits"),
        (["tenants", "change", "nobody", "--unset", "nothing"], "is no limit"),
        (["tenants", "change", "nobody", "--unset", "weight", "--limit", "weight=3"], "twice"),
        (["tenants", "change", "nobody"], "--name, --plan, --limit or --unset"),
        (["plans", "create", "a b"], "NAME 'a b': it must have 1 to 64 letters, digits"),
        (["plans", "change", "gold"], "--limit or --unset"),
        (["keys", "create", "--expires-in", "999999999d"], "--expires-in 999999999d: it must be more than 0 and"),
        (["keys", "rotate", "nonesuch", "--overlap", "soon"], "such as 30d"),
        (["keys", "rotate", "nonesuch", "--overlap", "31d"], "--overlap 31d: it must be at most 30d"),
        (["usage", "--since", "yesterday"], "2026-11-15"),
        (["usage", "--since", "2026-11-02", "--until", "2026-11-01"], "--since must be earlier than --until"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_told_in_one_line_by_its_flag_with_exit_code_2(
    axon: Axon, tmp_path: Path, arguments: list[str], said: str
) -> None:
    ran = axon(*arguments)
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1), ran.stderr
    assert said in ran.stderr
    assert not (tmp_path / "data").exists()


def test_what_is_not_there_is_told_in_one_line_with_exit_code_1(axon: Axon) -> None:
    assert axon("plans", "create", "pro").returncode == 0
    for arguments, said in (
        (["tenants", "create", "acme", "--plan", "gold"], "no plan 'gold'"),
        (["tenants", "show", "nobody"], "no tenant 'nobody'"),
        (["plans", "show", "gold"], "no plan 'gold'"),
        (["plans", "change", "gold", "--limit", "weight=2"], "no plan 'gold'"),
        (["keys", "rotate", "nonesuch"], "no key 'nonesuch'"),
        (["keys", "revoke", "nonesuch"], "axon keys list"),
        (["keys", "list", "--tenant", "nobody"], "no tenant 'nobody'"),
        (["usage", "--tenant", "nobody"], "no tenant 'nobody'"),
    ):
        ran = axon(*arguments)
        assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (1, "", 1), (arguments, ran.stderr)
        assert said in ran.stderr


def test_a_tenant_with_nothing_is_known_and_so_is_a_removed_ones_key(axon: Axon) -> None:
    made = axon("keys", "create", "--tenant", "acme", "--json")
    assert "Tenant acme was made" in made.stderr
    assert axon("tenants", "create", "idle").returncode == 0
    assert axon("keys", "list", "--tenant", "idle").returncode == 0
    assert axon("usage", "--tenant", "idle").returncode == 0
    axon("keys", "revoke", json.loads(made.stdout)["id"])
    assert axon("tenants", "remove", "acme").returncode == 0
    assert axon("usage", "--tenant", "acme").returncode == 0


@pytest.mark.parametrize(
    "command",
    [["tenants", "list"], ["tenants", "suspend", "acme"], ["plans", "show", "pro"], ["keys", "list"], ["usage"]],
    ids=" ".join,
)
def test_a_command_that_makes_nothing_makes_no_store(axon: Axon, tmp_path: Path, command: list[str]) -> None:
    ran = axon(*command)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"There is no store at {tmp_path / 'data' / 'axon.db'}" in ran.stderr
    assert not (tmp_path / "data").exists()


def test_more_reserved_than_there_is_is_done_and_warned_of(axon: Axon) -> None:
    assert axon("plans", "create", "half", "--limit", "reserved=0.5").stderr == ""
    assert axon("tenants", "create", "usual").stderr == ""
    for tenant in ("one", "two"):
        assert axon("tenants", "create", tenant, "--plan", "half").stderr == ""
    apart = axon("tenants", "create", "apart", "--limit", "reserved=0.5", "--limit", "pool=gold")
    assert apart.stderr == ""
    changed = axon("plans", "change", "half", "--limit", "reserved=0.6")
    assert changed.returncode == 0
    assert "1.2 of every shared worker's slots" in changed.stderr
    assert "1.3 of" in axon("plans", "create", "default", "--limit", "reserved=0.1").stderr
    assert "1.4 of" in axon("keys", "create", "--tenant", "three").stderr
