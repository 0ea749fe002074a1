"""The shipped configurations of log collectors can be read, and name fields that lines have."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from axon.telemetry.events.fields import FIELDS

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "observability"


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    return found


def test_the_collectors_pipelines_name_parts_that_are_configured() -> None:
    config = _read("collector/config.yaml")
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(config[kind])
    assert set(config["service"]["pipelines"]) == {"logs", "traces", "metrics"}
    assert set(config["receivers"]) == {"filelog", "otlp", "prometheus"}


def test_the_collectors_operators_name_fields_of_lines() -> None:
    text = (FOLDER / "collector/config.yaml").read_text("utf-8")
    named = set(re.findall(r"attributes\.(\w+)", text))
    assert named
    assert named <= set(FIELDS)


def test_fluent_bit_writes_to_the_indices_of_the_template_and_keeps_its_date() -> None:
    config = _read("fluent-bit/fluent-bit.yaml")
    template = json.loads((FOLDER / "opensearch/index-template.json").read_text("utf-8"))
    [output] = config["pipeline"]["outputs"]
    assert [f"{output['logstash_prefix']}-*"] == template["index_patterns"]
    [parser] = config["parsers"]
    assert config["pipeline"]["inputs"][0]["parser"] == parser["name"]
    assert (parser["time_key"], parser["time_keep"]) == ("ts", True)
    assert output["time_key"] not in template["template"]["mappings"]["properties"]


def test_loki_has_service_and_level_as_labels_and_nothing_else() -> None:
    text = (FOLDER / "loki/config.alloy").read_text("utf-8")
    [labels] = re.findall(r"stage\.labels \{\s*values = \{(.*?)\}", text, re.DOTALL)
    assert set(re.findall(r"(\w+) =", labels)) == {"service", "level"}
    [kept] = re.findall(r"stage\.label_keep \{\s*values = \[(.*?)\]", text, re.DOTALL)
    assert set(re.findall(r'"(\w+)"', kept)) == {"service", "level"}
    assert text.count("{") == text.count("}")
    for receiver in re.findall(r"forward_to = \[(\S+?)\.receiver\]", text):
        kind, name = receiver.rsplit(".", 1)
        assert f'{kind} "{name}"' in text
