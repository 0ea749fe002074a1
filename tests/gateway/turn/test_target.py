from dataclasses import replace

from axon.domain.pin import Pin
from axon.gateway.turn.target import Target
from tests.contracts.builders import make_presence
from tests.domain.registry.builders import deployment
from tests.gateway.offers.builders import make_prompts


def test_a_turn_has_time_for_a_start_only_if_its_version_has_no_worker() -> None:
    patient = replace(deployment(), cold_patience_s=45.0)
    served = make_presence("w1").deployment
    warm = Target(deployment=patient, served=served, prompts=make_prompts(), pin=Pin(0, "small@v1"))
    assert warm.patience_s == 0.0
    assert replace(warm, awaits_worker=True).patience_s == 45.0
