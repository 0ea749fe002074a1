"""The scripted echo engine: what it says depends on the prompt alone."""

import json
from pathlib import Path

import pytest

from axon.domain.byte_tokens import EOS_ID
from axon.engine.config import EngineConfig
from axon.engine.echo import EchoEngine
from axon.engine.script import open_script
from axon.errors import Misconfigured
from tests.engine.builders import make_add, run_to_end


def engine_with(folder: Path, *lines: dict[str, str]) -> EchoEngine:
    path = folder / "script.json"
    path.write_text(json.dumps(lines))
    return EchoEngine(EngineConfig(kind="echo", echo_script=str(path)))


def test_the_first_line_that_is_found_in_the_prompt_answers(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, {"if": "weather.*sunny", "say": "bright"}, {"if": "weather", "say": "call"})
    adds = [
        make_add("first", prompt=[*b"the weather"], max_tokens=10),
        make_add("second", prompt=[*b"the weather\nis sunny"], max_tokens=10),
        make_add("third", prompt=[*b"hi"], max_tokens=10),
    ]
    said = run_to_end(engine, adds)
    assert said == {"first": [*b"call", EOS_ID], "second": [*b"bright", EOS_ID], "third": [*b"hi", EOS_ID]}


def test_a_replay_goes_on_where_the_answer_stopped(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, {"if": "a", "say": "bright"})
    add = make_add(prompt=[*b"a"], output=[*b"bri"], max_tokens=10)
    assert run_to_end(engine, [add]) == {"a": [*b"ght", EOS_ID]}


@pytest.mark.parametrize("text", ["", "{}", '[{"if": "("}]', '[{"if": "(", "say": "a"}]'])
def test_a_file_that_is_no_script_is_refused_by_its_setting(tmp_path: Path, text: str) -> None:
    (tmp_path / "script.json").write_text(text)
    with pytest.raises(Misconfigured, match="echo_script"):
        open_script(str(tmp_path / "script.json"))


def test_a_missing_file_is_refused_by_its_setting(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="echo_script"):
        open_script(str(tmp_path / "none.json"))
