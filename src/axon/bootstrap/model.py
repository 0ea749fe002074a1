"""The model a deployment serves: found, converted once, and known by its version. Loads no weights."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axon.domain.deployment import Deployment
from axon.engine.architecture import read_architecture
from axon.engine.checkpoint import check_tensors, find_tensors
from axon.engine.messages import Ready
from axon.errors import Misconfigured
from axon.settings import Settings
from axon.text.template import ChatTemplate, load_template
from axon.text.tokenizer import Tokenizer, load_tokenizer

# A GGUF file does not carry it; SmolLM2's makers advise it for the instruct models, which ramble at 1.0.
_DEFAULT_MODEL_ADVICE = {"temperature": 0.2, "top_p": 0.9}
_NUM_SAMPLES = 256
_SAMPLE_BYTES = 4096
OnProgress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's text side, and where its weights lie."""

    folder: Path | None
    tokenizer: Tokenizer
    template: ChatTemplate | None


def prepare_model(settings: Settings, on_progress: OnProgress) -> Model:
    """The model's folder, converted once if it comes as a GGUF file; raises Misconfigured for one that cannot run."""
    if settings.engine.kind == "echo":
        return Model(folder=None, tokenizer=load_tokenizer(None), template=load_template(None))
    folder = find_folder(settings, on_progress)
    check_tensors(folder, read_architecture(folder))
    return Model(folder=folder, tokenizer=load_tokenizer(folder), template=load_template(folder))


def find_folder(settings: Settings, on_progress: OnProgress) -> Path:
    """Where the weights lie, converted once if they come as a GGUF file; raises Misconfigured."""
    if settings.model != "default" and Path(settings.model).is_dir():
        return Path(settings.model)
    from axon.engine.convert import convert_gguf, default_gguf, is_converted  # what reads GGUF files is large

    source = default_gguf() if settings.model == "default" else Path(settings.model)
    if not source.exists():
        raise Misconfigured(f"There is no model at {source}: give a folder of safetensors or a .gguf file.")
    assert settings.models_dir is not None
    folder = settings.models_dir / settings.model_name.replace("/", "--")
    if not is_converted(source, folder):
        convert_gguf(source, folder, lambda share: on_progress("Converting the model (once)", share))
    if settings.model == "default" and not (folder / "generation_config.json").exists():
        (folder / "generation_config.json").write_text(json.dumps(_DEFAULT_MODEL_ADVICE))
    return folder


def deployment_of(name: str, model: Model, engine: Ready, now: float) -> Deployment:
    """Its version changes with weights, tokenizer, template and kernel."""
    mark = hashlib.sha256(engine.kernel.encode())
    if model.folder is not None:
        for file in ("axon.json", "config.json", "tokenizer.json", "chat_template.jinja", "tokenizer_config.json"):
            path = model.folder / file
            mark.update(path.read_bytes() if path.exists() else b"-")
        if not (model.folder / "axon.json").exists():
            _sample_weights(model.folder, mark.update)
    return Deployment(
        name=name,
        version=f"fp_{mark.hexdigest()[:12]}",
        max_model_len=engine.max_model_len,
        created=now,
        reasons=model.template is not None and model.template.reasons,
        **_sampling_defaults(model.folder),
    )


def _sample_weights(folder: Path, update: Callable[[bytes], None]) -> None:
    """Pieces from all over the files: another training changes every tensor, and reading them whole takes minutes."""
    for path in sorted({place.path for place in find_tensors(folder).values()}):
        num_bytes = path.stat().st_size
        update(f"{path.name} {num_bytes}".encode())
        with path.open("rb") as file:
            for index in range(_NUM_SAMPLES):
                file.seek(num_bytes * index // _NUM_SAMPLES)
                update(file.read(_SAMPLE_BYTES))


def _sampling_defaults(folder: Path | None) -> dict[str, Any]:
    """What the model's makers advise, in its generation_config.json; the echo engine echoes."""
    if folder is None:
        return {"temperature": 0.0}
    path = folder / "generation_config.json"
    advice = json.loads(path.read_text()) if path.exists() else {}
    known = {"temperature": float, "top_p": float, "top_k": int}
    return {name: kind(advice[name]) for name, kind in known.items() if advice.get(name) is not None}
