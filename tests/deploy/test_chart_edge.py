"""The chart's nginx is that of deploy/edge with a cluster's names, and nginx itself takes it."""

import subprocess
from pathlib import Path

import pytest

from tests.deploy.chart import AWS, REPOSITORY, SETS, named, rendered, workloads
from tests.fleet.edge import filled
from tests.services.certificates import shared_authority
from tests.services.process import private_folder, unprivileged
from tests.services.require import find, require

TEMPLATE = REPOSITORY / "deploy" / "edge" / "nginx" / "nginx.conf.template"


@pytest.mark.parametrize("values", SETS)
def test_it_is_the_shipped_configuration_with_names_filled_in(values: str) -> None:
    (edge,) = [each for each in workloads(rendered(values)) if each.labels["axon.dev/role"] == "edge"]
    data = named(rendered(values), "ConfigMap", "axon-edge")["data"]
    gateways = " ".join(["server axon-gateway:8000 max_fails=0;"] * 3)
    listen = "8080 ssl http2" if "tls.conf" in data else "8080"
    own = {"folder": "/tmp", "processes": 2, "drain_s": 60, "requests_per_address": 100}
    shipped = filled(TEMPLATE, {"/tmp/error.log": "stderr"}, gateways=gateways, listen=listen, **own)
    assert data["nginx.conf"].rstrip() == shipped.rstrip()
    (volume,) = [each for each in edge.spec["volumes"] if each["name"] == "config"]
    assert {item["key"]: item["path"] for item in volume["configMap"]["items"]} == {
        name: name if name == "nginx.conf" else f"server/{name}" for name in data
    }


@pytest.mark.parametrize("values", ["minimal", "ha", "eks-gpu", AWS])
def test_nginx_takes_it(values: str, tmp_path: Path) -> None:
    require("nginx")
    folder = private_folder(tmp_path / "edge")
    private_folder(folder / "server")
    shared_authority().certificate(private_folder(folder / "tls"), "localhost")
    for name, text in named(rendered(values), "ConfigMap", "axon-edge")["data"].items():
        here = text.replace("/tmp", str(folder)).replace("/etc/axon-tls", str(folder / "tls"))
        here = here.replace("axon-gateway:8000", "127.0.0.1:8000")
        (folder / name if name == "nginx.conf" else folder / "server" / name).write_text(here)
    command = [str(find("nginx")), "-t", "-c", str(folder / "nginx.conf"), "-p", str(folder)]
    done = subprocess.run(unprivileged(command), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_behind_terraforms_balancer_only_the_balancer_says_who_a_client_is() -> None:
    """Without it all clients would share the balancer's address, and its cap."""
    text = named(rendered(AWS), "ConfigMap", "axon-edge")["data"]["balancer.conf"]
    trusted = [line.split()[1].rstrip(";") for line in text.splitlines() if line.startswith("set_real_ip_from")]
    assert trusted == ["10.20.0.0/24", "10.20.1.0/24", "10.20.2.0/24"], "the public subnets, where the balancer is"
    assert "real_ip_recursive on;" in text
    (gateway,) = [each for each in workloads(rendered(AWS)) if each.labels["axon.dev/role"] == "gateway"]
    assert gateway.env["AXON_GATEWAY_PROXIES"] == "2", "the balancer and nginx"
