"""A pod of the rehearsal finds every file that its environment names, as a pod of a cluster does."""

from pathlib import Path

import pytest

from axon.settings import load
from tests.deploy.chart import AWS, of_kind, rendered, workloads
from tests.deploy.rehearsal.pod import Place, Pod


@pytest.mark.parametrize("values", ["rehearsal", "external-datastores", AWS])
def test_urls_and_certificates_are_where_the_environment_says(values: str, tmp_path: Path) -> None:
    objects = rendered(values)
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(objects, "ConfigMap")}
    certificates = {name: {"ca.crt": "of a CA", "bundle.pem": "of a CA"} for name in ("axon-ca", "aws-ca")}
    held = {word: f"amqp://{word}" for word in ("queue", "live", "store", "url")} | {"pepper": "pepper"}
    place = Place(folder=tmp_path, secrets=held, files={**maps, **certificates}, services={}, environ={})
    (gateway,) = [each for each in workloads(objects) if each.labels["axon.dev/role"] == "gateway"]
    pod = Pod(gateway, "gateway-0", "127.0.0.1", "zone-a", place)
    pod.folder.mkdir()
    pod.mount()
    given = {name: value for name, value in pod.environment().items() if name.startswith("AXON_")}
    settings = load(environ=given).settings
    assert settings.queue == f"amqp://{'url' if values == 'external-datastores' else 'queue'}"
    if settings.service_ca_file is not None:
        assert settings.service_ca_file.read_text() == "of a CA"
    assert (settings.service_ca_file is None) is (values == "rehearsal")
