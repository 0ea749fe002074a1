"""The files of sentence-transformers in a model's folder: modules, pooling, prompts, length. Knows no weights."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axon.domain.model.embeds import Embeds
from axon.errors import Misconfigured

_POOLINGS = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "mean_sqrt_len": "mean_sqrt_len_tokens"}
_POOLINGS |= {"lasttoken": "lasttoken", "weightedmean": "weightedmean_tokens"}
_SUPPORTED_POOLINGS = ("cls", "mean", "max", "lasttoken")
_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """How the vector of a text is made of the last hidden states of its tokens, and how texts are prepared."""

    pooling: str
    """``mean``, ``cls``, ``max`` or ``lasttoken``."""
    normalizes: bool
    """Whether vectors are scaled to length 1."""
    max_tokens: int
    """Tokens of the longest input; 0 where nothing but the model's own length bounds it."""
    embeds: Embeds


def has_pooling(model_dir: Path) -> bool:
    """Whether sentence-transformers would pool the model's hidden states: its modules.json names a Pooling module."""
    return "Pooling" in _kinds(model_dir)


def read_sentences(model_dir: Path) -> Sentences:
    """Reads the files of sentence-transformers, or takes its defaults where there are none; raises Misconfigured."""
    for kind in (kinds := _kinds(model_dir)):
        if kind not in _MODULES:
            raise Misconfigured(f"a sentence-transformers module of type {kind!r} is not supported yet")
    stated = read_json(model_dir / "sentence_bert_config.json") or {}
    try:
        return Sentences(
            pooling=_read_pooling(model_dir),
            normalizes="Normalize" in kinds,
            max_tokens=int(stated.get("max_seq_length") or 0),
            embeds=_read_embeds(model_dir, lowercase=bool(stated.get("do_lower_case"))),
        )
    except KeyError as error:
        raise Misconfigured(f"{model_dir}/config.json does not say {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise Misconfigured(f"the configuration in {model_dir} cannot be understood: {error}") from error


def read_json(path: Path) -> Any:
    """The JSON in a file; None where there is no file. Raises Misconfigured."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Misconfigured(f"{path} cannot be read: {error}") from None
    except RecursionError:
        raise Misconfigured(f"{path} cannot be read: it is nested too deeply") from None


def read_config(model_dir: Path) -> dict[str, Any]:
    """The object in config.json; empty where there is no file. Raises Misconfigured."""
    config = read_json(model_dir / "config.json")
    if config is not None and not isinstance(config, dict):
        raise Misconfigured(f"{model_dir / 'config.json'} cannot be read: it is no JSON object")
    return config or {}


def _modules(model_dir: Path) -> list[Any]:
    found = read_json(model_dir / "modules.json") or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Misconfigured(f"{model_dir}/modules.json cannot be understood: it is no list of modules")
    return found


def _kinds(model_dir: Path) -> list[str]:
    return [_kind(module) for module in _modules(model_dir)]


def _kind(module: dict[str, Any]) -> str:
    return str(module.get("type", "")).rpartition(".")[2]


def _read_pooling(model_dir: Path) -> str:
    """The pooling that the Pooling module names; the mean, as sentence-transformers takes, where there is none."""
    folder = next((each.get("path", "") for each in _modules(model_dir) if _kind(each) == "Pooling"), "")
    config = read_json(model_dir / folder / "config.json") if folder else None
    if not config:
        return "mean"
    named = config.get("pooling_mode")
    found = [named] if named else [mode for mode, flag in _POOLINGS.items() if config.get(f"pooling_mode_{flag}")]
    if len(found) != 1 or found[0] not in _SUPPORTED_POOLINGS:
        words = " and ".join(map(str, found)) or "nothing"
        raise Misconfigured(f"pooling of {words} is not supported yet; {', '.join(_SUPPORTED_POOLINGS)} are")
    if config.get("include_prompt") is False:
        raise Misconfigured("pooling that leaves the prompt out (include_prompt) is not supported yet")
    return str(found[0])


def _read_embeds(model_dir: Path, *, lowercase: bool) -> Embeds:
    config = read_config(model_dir)
    stated = read_json(model_dir / "config_sentence_transformers.json") or {}
    prompts = stated.get("prompts") or {}
    return Embeds(
        dimensions=int(config["hidden_size"]),
        prompts=tuple((str(name), str(text)) for name, text in prompts.items() if text),
        default_prompt=stated.get("default_prompt_name") or "",
        shorter=tuple(sorted(int(size) for size in config.get("matryoshka_dimensions") or ())),
        any_shorter=bool(config.get("is_matryoshka")) and not config.get("matryoshka_dimensions"),
        lowercase=lowercase,
    )
