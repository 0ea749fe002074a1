"""``compose.yaml`` says what Axon needs of its services. Needs no Docker: what is read here is the file alone."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FILE = Path(__file__).resolve().parent.parent / "compose.yaml"
SERVICES = ["redis", "rabbitmq", "postgres"]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def test_it_starts_the_three_services_and_nothing_else(compose: dict[str, Any]) -> None:
    assert sorted(compose["services"]) == sorted(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_pinned_checked_kept_and_reachable_from_here_only(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]
    assert re.fullmatch(r"[a-z/]+:\d+(-management)?", service["image"])
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["ports"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    (volume,) = service["volumes"]
    assert volume.split(":")[0] in compose["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_each_password_comes_from_the_environment_with_a_default_for_development(
    compose: dict[str, Any], name: str
) -> None:
    variable = f"${{{name.upper()}_PASSWORD:-axon}}"
    assert variable in str(compose["services"][name])
    # A setting of Axon's own by that name would be refused by it as unknown.
    assert "AXON_" not in str(compose)


def test_redis_keeps_what_it_took_and_evicts_nothing(compose: dict[str, Any]) -> None:
    command = compose["services"]["redis"]["command"]
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_rabbitmq_keeps_its_name_and_so_its_queues(compose: dict[str, Any]) -> None:
    assert compose["services"]["rabbitmq"]["hostname"] == "rabbitmq"


def test_the_line_to_paste_names_every_published_port(compose: dict[str, Any]) -> None:
    text = FILE.read_text()
    for address in (
        "amqp://axon:axon@127.0.0.1:5672/",
        "redis://:axon@127.0.0.1:6379",
        "axon:axon@127.0.0.1:5432/axon",
    ):
        assert address in text
    published = [port.split(":")[1] for name in SERVICES for port in compose["services"][name]["ports"]]
    assert {"5672", "6379", "5432"} <= set(published)
