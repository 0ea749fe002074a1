"""What a front is told, and what it tells, arrives as it was."""

from dataclasses import replace
from pathlib import Path

from axon.bootstrap.fronts.messages import TO_FRONT, TO_PARENT, Failed, Scraped, Start, pack, unpack
from axon.domain.model.served_version import ServedVersion
from axon.engine.protocol.codec import Decoder, encode
from axon.errors import AxonError, DependencyDown, Misconfigured
from axon.gateway.config import GatewayConfig
from axon.settings import Settings
from axon.telemetry.metrics import Metrics
from axon.telemetry.summing import families_of


def test_settings_arrive_whole_with_their_secrets(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path, pepper="a long secret", gateway=GatewayConfig(port=1234), queue="amqp://u:p@h"
    )
    assert unpack(pack(settings)) == settings
    assert unpack(pack(replace(settings, models_dir=tmp_path / "models"))) == settings


def test_a_start_carries_the_deployment() -> None:
    start = Start(settings=b"s", hub="/x", served=(ServedVersion(name="m", version="1", max_model_len=8, created=1.0),))
    assert Decoder(TO_FRONT).feed(encode(start)) == [start]


def test_metrics_arrive_as_they_were_read() -> None:
    scraped = Scraped(7, families_of(Metrics().registry))
    assert Decoder(TO_PARENT).feed(encode(scraped)) == [scraped]


def test_an_error_arrives_as_what_it_was() -> None:
    for error in (Misconfigured("no"), DependencyDown("away", code="redis_down")):
        arrived = Failed(type(error).__name__, error.message, error.code).error()
        assert type(arrived) is type(error)
        assert (arrived.message, arrived.code) == (error.message, error.code)
    assert type(Failed("PromptTooLong", "an error with more than a message", "c").error()) is AxonError
