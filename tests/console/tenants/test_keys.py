"""``axon keys``: made, listed, rotated and revoked."""

import json
from pathlib import Path

import pytest

from axon.domain.tenants.key import parse_key
from tests.console.program import Axon


def test_keys_are_made_listed_and_revoked(axon: Axon) -> None:
    made = axon("keys", "create", "--tenant", "acme", "--name", "laptop")
    assert made.returncode == 0, made.stderr
    key = parse_key(made.stdout.strip())
    assert key is not None
    assert made.stdout.strip() not in made.stderr
    (listed,) = json.loads(axon("keys", "list", "--json").stdout)
    assert (listed["id"], listed["tenant"], listed["name"], listed["status"]) == (key.id, "acme", "laptop", "valid")
    assert key.id in axon("keys", "list").stdout
    assert axon("keys", "revoke", key.id).returncode == 0
    assert json.loads(axon("keys", "list", "--json").stdout)[0]["status"] == "revoked"


def test_a_key_made_for_a_machine_is_json(axon: Axon) -> None:
    made = json.loads(axon("keys", "create", "--expires-in", "1d", "--json").stdout)
    assert parse_key(made["key"]) is not None
    assert made["expires_at"] == made["created_at"] + 86400


@pytest.mark.parametrize(
    "bad", [["--expires-in", "9999999w"], ["--expires-in", "1"], ["--tenant", ""], ["--tenant", "a\nb"]]
)
def test_a_key_that_could_not_be_listed_is_not_made(axon: Axon, bad: list[str]) -> None:
    assert axon("plans", "create", "pro").returncode == 0
    ran = axon("keys", "create", *bad)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"axon: {bad[0]} ")
    assert json.loads(axon("keys", "list", "--json").stdout) == []


def test_a_key_has_the_scopes_it_is_given_and_its_successor_has_them_too(axon: Axon) -> None:
    made = json.loads(axon("keys", "create", "--tenant", "ops", "--scope", "admin", "--scope", "read", "--json").stdout)
    assert made["scopes"] == ["admin", "read"]
    rotated = axon("keys", "rotate", made["key"], "--overlap", "10m")
    new = parse_key(rotated.stdout.strip())
    assert new is not None, rotated.stderr
    old, successor = json.loads(axon("keys", "list", "--tenant", "ops", "--json").stdout)
    assert (old["id"], old["status"], old["expires_at"] is None) == (made["id"], "valid", False)
    assert (successor["id"], successor["previous"], successor["scopes"]) == (new.id, old["id"], ["admin", "read"])
    axon("keys", "revoke", made["id"])
    again = axon("keys", "rotate", made["id"])
    assert (again.returncode, again.stdout) == (1, "")
    assert "revoked" in again.stderr


@pytest.mark.parametrize("command", ["rotate", "revoke"])
def test_what_may_be_a_piece_of_a_key_is_not_repeated(axon: Axon, command: str) -> None:
    key = axon("keys", "create").stdout.strip()
    for wrong in (key[:-1], key + "x", key[:30], key.removeprefix("axk_"), key[13:]):
        ran = axon("keys", command, "--", wrong)  # a secret may begin with a hyphen
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "keys list" in ran.stderr
        assert wrong not in ran.stderr
        assert key[13:21] not in ran.stderr


def test_listing_keys_makes_no_secret_to_hash_them_with(axon: Axon, tmp_path: Path) -> None:
    assert axon("plans", "create", "pro").returncode == 0
    for command in (["keys", "list"], ["tenants", "list"], ["usage"]):
        assert axon(*command).returncode == 0
    assert not (tmp_path / "data" / "pepper").exists()


def test_no_keys_is_said_in_words(axon: Axon) -> None:
    assert axon("plans", "create", "pro").returncode == 0
    ran = axon("keys", "list")
    assert ran.returncode == 0, ran.stderr
    assert "axon keys create" in ran.stderr
