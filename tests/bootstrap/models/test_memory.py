from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axon.bootstrap.models.memory import available_bytes, need_of, require_memory, require_room
from axon.bootstrap.models.model import Model
from axon.engine.config import EngineConfig
from axon.errors import Misconfigured
from axon.settings import Settings
from tests.engine.builders import make_tiny_llama

TEXT: Any = None
GIB = 1 << 30


@pytest.fixture
def tiny(tmp_path: Path) -> Model:
    return Model(folder=make_tiny_llama(tmp_path / "tiny"), text=TEXT)


def two(**engine: Any) -> tuple[Settings, ...]:
    settings = Settings(models="small=x,large=y")
    return tuple(replace(each, engine=replace(each.engine, **engine)) for each in settings.each_model())


def test_wider_numbers_take_more(tiny: Model) -> None:
    weights = [need_of("m", tiny, EngineConfig(dtype=dtype)).weights for dtype in ("int8", "bfloat16", "float32")]
    assert weights == sorted(weights)
    assert weights[2] == 2 * weights[1]
    assert need_of("m", tiny, EngineConfig()).weights == weights[0]


def test_blocks_are_counted_as_they_are_set(tiny: Model) -> None:
    assert need_of("m", tiny, EngineConfig(kv_memory_bytes=5 * GIB)).kv == 5 * GIB
    assert need_of("m", tiny, EngineConfig()).kv == GIB


def test_a_draft_model_takes_its_weights_and_no_blocks_of_its_own(tiny: Model, tmp_path: Path) -> None:
    both = replace(tiny, draft=make_tiny_llama(tmp_path / "draft"))
    alone, together = (need_of("m", each, EngineConfig()) for each in (tiny, both))
    assert together.weights == pytest.approx(2 * alone.weights, abs=1)
    assert together.kv == alone.kv


def test_an_engine_without_a_model_takes_no_blocks() -> None:
    need = need_of("echo", Model(folder=None, text=TEXT), EngineConfig())
    assert (need.weights, need.kv) == (0, 0)


def test_models_that_do_not_fit_together_are_refused_with_the_figures(tiny: Model) -> None:
    with pytest.raises(Misconfigured) as refused:
        require_memory(two(kv_memory_bytes=2 * GIB), [tiny, tiny], available=4 * GIB)
    message = refused.value.message
    assert "they take 5.1 GB, and 4.3 GB are available" in message
    assert "small 2.6 GB" in message
    assert "KV blocks 2.1 GB" in message


def test_models_that_fit_are_taken(tiny: Model) -> None:
    require_memory(two(kv_memory_bytes=GIB), [tiny, tiny], available=4 * GIB)


def test_a_single_model_and_those_of_a_gpu_are_left_to_their_engines(tiny: Model) -> None:
    require_memory(two()[:1], [tiny], available=1)
    require_memory(two(device="cuda"), [tiny, tiny], available=1)


def test_a_gpus_memory_is_divided_unless_a_model_says_otherwise() -> None:
    settings = Settings(models="a=x,b=y;gpu_memory_fraction=0.3,c=z")
    assert [each.engine.gpu_memory_fraction for each in settings.each_model()] == [
        pytest.approx(0.3),
        pytest.approx(0.3),
        pytest.approx(0.3),
    ]
    assert Settings().each_model()[0].engine.gpu_memory_fraction == 0.9


def test_there_is_memory_here() -> None:
    assert available_bytes() > 0


def test_one_more_model_beside_those_that_run_must_fit_into_what_is_left(tiny: Model) -> None:
    (one, _) = two(kv_memory_bytes=2 * GIB)
    require_room(one, tiny, available=4 * GIB)
    with pytest.raises(Misconfigured, match=r"small does not fit .* takes 2\.6 GB .* 1\.1 GB are available"):
        require_room(one, tiny, available=GIB)
