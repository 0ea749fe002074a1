"""More load never needs less of anything, and every number says where it came from."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.sizing import figure as figures
from axon.domain.sizing.device import Device
from axon.domain.sizing.engine import EngineCost, cpu_cost, gpu_cost
from axon.domain.sizing.figure import Certainty
from axon.domain.sizing.plan import Load, plan
from axon.domain.sizing.shape import KNOWN, Shape
from axon.errors import InvalidInput
from tests.console.program import Axon

LONGEST_PROMPT, LONGEST_CONTEXT = 4000.0, 8192.0


def costs(shape: Shape, device: Device) -> EngineCost:
    return gpu_cost(shape, fp8=device is Device.H200_FP8) if device.is_gpu else cpu_cost(shape)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Shape, Load]:
    """A model and a load that its streams can give on every device, even with the longest prompts and contexts."""
    shape = draw(st.sampled_from(sorted(KNOWN.values(), key=lambda shape: shape.name)))
    prompt, answer = draw(st.floats(0, LONGEST_PROMPT)), draw(st.floats(1, 2000))
    streams = draw(st.integers(1, 1_000_000))
    alone_s = max(costs(shape, each).lone_request_s(LONGEST_PROMPT, answer, LONGEST_CONTEXT) for each in Device)
    load = Load(
        tokens_per_s=draw(st.floats(0.001, 1)) * streams * answer / alone_s,
        streams=streams,
        prompt_tokens=prompt,
        answer_tokens=answer,
        context=max(prompt + answer, draw(st.floats(1, LONGEST_CONTEXT))),
        device=draw(st.sampled_from(Device)),
    )
    return shape, load


COUNTS = ("replicas", "gateways", "Redis shards", "RabbitMQ clusters", "PostgreSQL primaries", "cells")


@given(asked(), st.sampled_from(["tokens_per_s", "streams", "prompt_tokens", "context"]), st.floats(1, 50))
def test_more_load_never_needs_less(given: tuple[Shape, Load], which: str, times: float) -> None:
    shape, load = given
    prompt = min(load.prompt_tokens * times, LONGEST_PROMPT)
    alone_s = costs(shape, load.device).lone_request_s(load.prompt_tokens, load.answer_tokens, load.kept_tokens)
    more: dict[str, dict[str, Any]] = {
        "tokens_per_s": {"tokens_per_s": min(load.tokens_per_s * times, load.streams * load.answer_tokens / alone_s)},
        "streams": {"streams": math.ceil(load.streams * times)},
        "prompt_tokens": {"prompt_tokens": prompt, "context": max(load.kept_tokens, prompt + load.answer_tokens)},
        "context": {"context": min(load.kept_tokens * times, LONGEST_CONTEXT)},
    }
    before, after = plan(shape, load), plan(shape, replace(load, **more[which]))
    for part in before.parts:
        if part.unit.endswith("a replica"):
            continue  # more replicas may have less each
        assert after.part(part.name).number >= part.number - 1e-9, part.name


@given(asked())
def test_there_is_always_one_more_than_is_needed(given: tuple[Shape, Load]) -> None:
    shape, load = given
    found = plan(shape, load)
    assert found.part("replicas").number >= 2
    assert found.part("gateways").number >= 2
    assert all(found.part(name).number >= 1 and float(found.part(name).number).is_integer() for name in COUNTS)


@given(asked())
def test_every_part_says_its_figures_or_is_computed_from_the_shape(given: tuple[Shape, Load]) -> None:
    shape, load = given
    for part in plan(shape, load).parts:
        assert part.why
        assert part.sources or part.name in ("weights", "KV in use", "GPUs")
        assert set(part.sources) <= set(figures.ALL)
        if part.certainty is Certainty.MEASURED:
            assert any(figure.page for figure in part.sources)


def test_a_million_streams_need_what_the_page_says() -> None:
    """docs/scale.md has the same load with a coarser model of the engine: the services must agree."""
    load = Load(tokens_per_s=20e6, streams=1_000_000, prompt_tokens=1000, answer_tokens=250)
    found = plan(KNOWN["llama-3-8b"], load)
    assert found.part("Redis shards").number == 380
    assert found.part("RabbitMQ clusters").number == 88
    assert found.part("PostgreSQL primaries").number == 51
    assert found.part("replicas").number == math.ceil(1_000_000 / 256) + 1, "slots are the bound"


def test_the_memory_of_the_measured_engine_is_the_measured_one() -> None:
    """On a CPU, the weights of the model that was measured are not counted a second time."""
    load = Load(tokens_per_s=10, streams=1, device=Device.CPU)
    shape = KNOWN["smollm2-135m"]
    found = plan(shape, load)
    kv = found.part("KV in use").number * 1e9 / found.part("replicas").number
    measured = figures.CPU_ENGINE_BYTES.value + figures.PROCESS_BYTES.value
    assert found.part("host memory").number * 1e9 == pytest.approx(measured + kv)
    twice = replace(shape, num_parameters=2 * shape.num_parameters)
    more = plan(twice, load).part("host memory").number - found.part("host memory").number
    assert more * 1e9 == pytest.approx(shape.weight_bytes(int8=True))


@given(asked())
def test_a_longer_context_than_was_measured_on_a_cpu_is_an_assumption(given: tuple[Shape, Load]) -> None:
    """Longer contexts add nothing there, as nobody has measured what they cost."""
    shape, load = given
    found = plan(shape, replace(load, device=Device.CPU))
    is_longer = load.kept_tokens > 256
    for name in ("replicas", "worker cores"):
        assert (found.part(name).certainty is Certainty.ASSUMED) == is_longer
    assert ("were not measured" in found.part("replicas").why) == is_longer


@given(asked())
def test_a_longer_context_on_a_gpu_is_computed(given: tuple[Shape, Load]) -> None:
    shape, load = given
    cost = gpu_cost(shape)
    assert cost.request_s(512, 128, 8192) > cost.request_s(512, 128, 576)
    found = plan(shape, replace(load, context=8192.0, device=Device.H200)).part("replicas")
    assert found.certainty is (Certainty.ASSUMED if cost.num_ranks > 1 else Certainty.COMPUTED)
    assert "were not measured" not in found.why


def test_spare_and_least_replicas_are_told_as_their_figures_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "SPARE_REPLICAS", replace(figures.SPARE_REPLICAS, value=3))
    monkeypatch.setattr(figures, "LEAST", replace(figures.LEAST, value=7))
    found = plan(KNOWN["llama-3-8b"], Load(tokens_per_s=10.0, streams=1))
    assert found.part("replicas").number == found.part("gateways").number == 7
    assert "and 3 spare" in found.part("replicas").why
    assert "at least 7" in found.part("gateways").why
    assert {figures.SPARE_REPLICAS, figures.LEAST} <= set(found.part("replicas").sources)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokens_per_s": 0.0}, "--tokens-per-s"),
        ({"streams": 0}, "--streams"),
        ({"prompt_tokens": -1.0}, "--prompt-tokens"),
        ({"prompt_tokens": math.inf}, "--prompt-tokens is too large: no more than 100,000,000"),
        ({"prompt_tokens": math.nan}, "--prompt-tokens is nan"),
        ({"answer_tokens": math.nan}, "--answer-tokens"),
        ({"answer_tokens": 1e-300}, "--answer-tokens is 1e-300: it must be 1 or more"),
        ({"answer_tokens": 1e300}, "--answer-tokens is too large: no more than 100,000,000"),
        ({"tokens_per_s": 1e300}, "--tokens-per-s is too large: no more than 10,000,000,000"),
        ({"tokens_per_s": math.inf}, "--tokens-per-s is too large: no more than"),
        ({"streams": 10**400}, "--streams is too large: no more than 1,000,000,000"),
        ({"context": math.inf}, "--context is too large: no more than"),
        ({"context": 1e6}, "context of llama-3-8b"),
        ({"context": 767}, "--context is 767: a stream keeps its prompt and its answer, which have 768 tokens"),
    ],
)
def test_a_load_that_makes_no_sense_is_refused(changes: dict[str, Any], said: str) -> None:
    load = Load(tokens_per_s=10.0, streams=1)
    with pytest.raises(InvalidInput, match=said):
        plan(KNOWN["llama-3-8b"], replace(load, **changes))


def test_streams_that_cannot_give_so_much_are_refused_with_the_number_that_can() -> None:
    shape, load = KNOWN["llama-3-8b"], Load(tokens_per_s=20_000.0, streams=1, prompt_tokens=0.0)
    measured = figures.H200_8B.one_stream.value
    with pytest.raises(InvalidInput, match=f"at most {measured:g}, alone in a replica. At least 78 are needed"):
        plan(shape, load)
    assert math.ceil(load.tokens_per_s / measured) == 78
    plan(shape, replace(load, streams=78))
    plan(shape, replace(load, tokens_per_s=measured))
    with pytest.raises(InvalidInput, match=r"10 streams cannot give 100,000 tokens/s.*--streams \d+\."):
        plan(KNOWN["smollm2-135m"], Load(tokens_per_s=1e5, streams=10, device=Device.CPU))


@given(asked())
def test_there_is_work_for_every_replica_that_computes(given: tuple[Shape, Load]) -> None:
    """What streams can give never needs many more busy replicas than there are streams."""
    shape, load = given
    cost = costs(shape, load.device)
    share = figures.USED.value * cost.kept
    needed = int(plan(shape, load).part("replicas").why.split()[1].rstrip(",;"))
    assert needed <= math.ceil(load.streams / share)


def test_the_program_shows_the_plan_and_its_figures(tmp_path: Any) -> None:
    axon, load = Axon(tmp_path), ("--tokens-per-s", "20000", "--streams", "1000")
    told = axon("size", "--model", "llama-3-8b", *load)
    assert told.returncode == 0, told.stderr
    assert "replicas" in told.stdout
    assert "docs/performance.md" in told.stdout
    assert "assumed" in told.stdout
    facts = json.loads(axon("size", "--model", "llama-3-8b", *load, "--json").stdout)
    assert {part["name"] for part in facts["parts"]} >= set(COUNTS)
    on_cpu = axon("size", "--model", "smollm2-135m", *load, "--device", "cpu")
    assert "two cores for each replica" in on_cpu.stdout
    refused = axon("size", "--model", "nobody", *load)
    assert refused.returncode == 2
    assert "known shape" in refused.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"answer_tokens": 1e-320},
        {"answer_tokens": 0.5},
        {"tokens_per_s": 1e308},
        {"tokens_per_s": math.nan},
        {"streams": 10**400},
        {"prompt_tokens": math.inf, "context": 100},
    ],
)
@pytest.mark.parametrize("device", Device)
def test_a_load_that_nobody_has_is_refused(wrong: dict[str, Any], device: Device) -> None:
    load = replace(Load(tokens_per_s=100.0, streams=10, device=device), **wrong)
    with pytest.raises(InvalidInput, match=f"--{next(iter(wrong)).replace('_', '-')} is"):
        plan(KNOWN["llama-3-8b"], load)
