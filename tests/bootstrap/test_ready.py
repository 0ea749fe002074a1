"""The one-time code of a start: for the development key, on loopback alone."""

from pathlib import Path

import pytest

from axon.adapters.live.memory.cache import MemoryCache
from axon.bootstrap.ready import Ready, start_code
from axon.domain.tenants.key import new_key_text
from axon.errors import DependencyDown
from axon.gateway.config import GatewayConfig
from axon.runtime.clock import FakeClock
from axon.settings import Settings
from axon.tenants.one_time_codes import OneTimeCodes


@pytest.mark.parametrize("prefix", ["", "/axon"])
@pytest.mark.parametrize(("code", "rest"), [("c0de", "/#code=c0de"), ("", "/")])
def test_the_page_is_where_its_cookie_is_good(prefix: str, code: str, rest: str) -> None:
    ready = Ready(
        url="http://127.0.0.1:8000",
        metrics_url="",
        key=None,
        key_file=Path(),
        models=(),
        pid=1,
        code=code,
        path_prefix=prefix,
    )
    assert ready.page == f"http://127.0.0.1:8000{prefix}{rest}"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_a_server_on_loopback_has_a_code_for_its_key(tmp_path: Path, host: str) -> None:
    parsed, text = new_key_text()
    (tmp_path / "dev-key").write_text(f"{text}\n")
    clock = FakeClock()
    cache = MemoryCache(clock)
    code = await start_code(Settings(data_dir=tmp_path, gateway=GatewayConfig(host=host)), cache, clock)
    assert await OneTimeCodes(cache, clock).redeem(code) == parsed.id


@pytest.mark.parametrize(
    ("host", "key"),
    [("0.0.0.0", new_key_text()[1]), ("gpu-box", new_key_text()[1]), ("127.0.0.1", "no key"), ("::1", None)],
)
async def test_without_loopback_or_a_key_there_is_none(tmp_path: Path, host: str, key: str | None) -> None:
    if key is not None:
        (tmp_path / "dev-key").write_text(key)
    clock = FakeClock()
    settings = Settings(data_dir=tmp_path, gateway=GatewayConfig(host=host))
    assert await start_code(settings, MemoryCache(clock), clock) == ""


async def test_a_server_starts_without_a_code_when_live_is_away(tmp_path: Path) -> None:
    class Away(MemoryCache):
        async def put(self, key: str, value: bytes, *, ttl_s: float, only_new: bool = False) -> bool:
            raise DependencyDown

    (tmp_path / "dev-key").write_text(new_key_text()[1])
    clock = FakeClock()
    assert await start_code(Settings(data_dir=tmp_path), Away(clock), clock) == ""
