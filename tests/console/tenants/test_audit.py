"""``axon audit``: what was changed by commands, the newest first, with what differs."""

import json

from tests.console.program import Axon


def test_the_changes_of_commands_are_listed_and_filtered(axon: Axon) -> None:
    assert "axon" in axon("audit").stderr, "there is no store yet, and one is told what to do"
    axon("plans", "create", "pro", "--limit", "weight=2")
    axon("tenants", "create", "acme", "--plan", "pro")
    axon("tenants", "change", "acme", "--name", "Acme")
    key = json.loads(axon("keys", "create", "--tenant", "acme", "--json").stdout)
    assert axon("keys", "revoke", key["id"]).returncode == 0
    found = json.loads(axon("audit", "--json").stdout)
    assert [(each["actor"], each["kind"], each["action"]) for each in found] == [
        ("cli", "key", "revoke"),
        ("cli", "key", "add"),
        ("cli", "tenant", "change"),
        ("cli", "tenant", "add"),
        ("cli", "plan", "add"),
    ]
    table = axon("audit", "--kind", "tenant").stdout
    assert "name: – → Acme" in table
    assert "revoke" not in table
    assert [each["action"] for each in json.loads(axon("audit", "--text", key["id"], "--json").stdout)] == [
        "revoke",
        "add",
    ]
    page = json.loads(axon("audit", "--limit", "1", "--after", found[1]["id"], "--json").stdout)
    assert [each["id"] for each in page] == [found[2]["id"]]
    assert axon("audit", "--after", "none").returncode == 1
    assert "Nothing that matches" in axon("audit", "--text", "nowhere").stderr
    assert key["key"] not in axon("audit", "--json").stdout


def test_a_key_that_is_given_as_a_name_is_refused_and_written_nowhere(axon: Axon) -> None:
    key = axon("keys", "create", "--tenant", "acme").stdout.strip()
    for words in (
        *(("keys", "create", "--name", key), ("keys", "create", "--tenant", key), ("tenants", "create", key)),
        *(("tenants", "change", "acme", "--name", f"for {key}"), ("plans", "create", key)),
        *(("tenants", "change", "acme", "--limit", f"models={key}"), ("rollback", "small", "--reason", key)),
        ("aliases", "set", key, "small"),
    ):
        ran = axon(*words)
        assert ran.returncode != 0, words
        assert "API key" in ran.stderr, (words, ran.stderr)
        assert key not in ran.stdout + ran.stderr, words
    assert key not in axon("audit", "--json").stdout
