"""Signing in by an issuer, put together: off by default, and its secret from a file."""

from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.live.memory.cache import MemoryCache
from axon.bootstrap.gateway.oidc import make_oidc
from axon.errors import Misconfigured
from axon.gateway.config import GatewayConfig
from axon.runtime.clock import FakeClock
from axon.settings import Settings

CONFIG = GatewayConfig(
    oidc_issuer="https://login.example.com",
    oidc_client_id="axon",
    oidc_redirect_url="https://axon.example.com/ui/oidc/callback",
    oidc_keys="ada@example.com=k0000001",
)


def made(config: GatewayConfig, tmp_path: Path) -> object:
    clock = FakeClock()
    return make_oidc(Settings(data_dir=tmp_path, pepper="p" * 32, gateway=config), MemoryCache(clock), clock)


def test_without_an_issuer_there_is_nothing(tmp_path: Path) -> None:
    assert made(GatewayConfig(), tmp_path) is None


def test_a_public_client_needs_no_secret(tmp_path: Path) -> None:
    assert made(CONFIG, tmp_path) is not None


def test_a_secret_that_cannot_be_read_is_told_by_its_setting(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    with pytest.raises(Misconfigured, match=r"gateway\.oidc_secret_file"):
        made(replace(CONFIG, oidc_secret_file=str(secret)), tmp_path)
    secret.write_text("s3cr3t\n")
    assert made(replace(CONFIG, oidc_secret_file=str(secret)), tmp_path) is not None
