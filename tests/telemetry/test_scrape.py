"""Metrics and probes over HTTP."""

import urllib.error
import urllib.request

import pytest

from axon.telemetry.metrics import Metrics


def test_metrics_are_served_at_their_path_only_and_the_port_is_free_afterwards() -> None:
    port, close = Metrics().serve("127.0.0.1", 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            text = response.read().decode()
        assert "axon_build_info{" in text
        assert "# HELP axon_kv_usage_ratio " in text
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/")
        caught.value.close()
        assert caught.value.code == 404
    finally:
        close()
    again, close = Metrics().serve("127.0.0.1", port)
    close()
    assert again == port


def test_names_keep_their_colon_whatever_a_scraper_accepts() -> None:
    port, close = Metrics("vllm").serve("127.0.0.1", 0)
    try:
        accepts = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=accepts)
        with urllib.request.urlopen(request) as response:
            text = response.read().decode()
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "# HELP vllm:num_requests_running " in text
    finally:
        close()
