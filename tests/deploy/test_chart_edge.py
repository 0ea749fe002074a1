"""The nginx configuration that the chart renders is taken by the real nginx, with every set of values."""

import subprocess
from pathlib import Path

import pytest

from tests.deploy.chart import SETS, of_kind, rendered
from tests.services.certificates import shared_authority
from tests.services.require import find, require


def configuration(values: str) -> str:
    [text] = [
        each["data"]["nginx.conf"] for each in of_kind(rendered(values), "ConfigMap") if "nginx.conf" in each["data"]
    ]
    return str(text)


@pytest.mark.services
@pytest.mark.parametrize("values", SETS)
def test_nginx_takes_what_the_chart_renders(values: str, tmp_path: Path) -> None:
    require("nginx")
    shared_authority().certificate(tmp_path, "localhost")
    text = configuration(values).replace("/tmp/", f"{tmp_path}/").replace("/etc/axon-tls", str(tmp_path))
    (config := tmp_path / "nginx.conf").write_text(text.replace("axon-gateway:8000", "127.0.0.1:1"))
    ran = subprocess.run([find("nginx") or "", "-t", "-c", config, "-p", tmp_path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "[warn]" not in ran.stderr


@pytest.mark.parametrize("values", SETS)
def test_uploads_are_as_large_as_a_gateway_takes_and_what_is_away_is_told_as_503(values: str) -> None:
    text = configuration(values)
    assert "error_page 502 504 = @away;" in text
    assert "location = /v1/files" in text
    is_guessed = "set_real_ip_from 10.0.0.0/8;" in text
    assert ("real_ip_recursive off;" in text) == is_guessed
