"""Finds a deployment's model, converts it once and computes its version. Loads no weights."""

import hashlib
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from axon.bootstrap.models.preflight import require_space
from axon.domain.model.classes import Activation, Classes
from axon.domain.model.embeds import Embeds
from axon.domain.model.served_version import ServedVersion
from axon.engine.config import NO_DRAFT, EngineConfig
from axon.engine.load.architecture import read_architecture
from axon.engine.load.head_folder import DEFAULT_HEAD, is_head
from axon.engine.load.tensor_files import check_tensors, find_tensors
from axon.engine.load.vector_model import check_vector_model, gives_vectors, read_vector_model
from axon.engine.protocol.messages import Ready
from axon.errors import Misconfigured
from axon.settings import Settings
from axon.text.template import ChatTemplate, load_template
from axon.text.tokenizer import Tokenizer, load_tokenizer

# A GGUF file does not carry it; SmolLM2's makers advise it for the instruct models, which ramble at 1.0.
_DEFAULT_MODEL_ADVICE = {"temperature": 0.2, "top_p": 0.9}
# At 0.2 a model of 135M parameters repeats itself until its limit in two answers of three; this ends most of them.
_DEFAULT_MODEL_REPETITION_PENALTY = 1.15
_TEXT_FILES = ("tokenizer.json", "chat_template.jinja", "tokenizer_config.json")
_SENTENCE_FILES = (
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)
_PACKED = ("auto", "int8")
"""With these settings of ``engine.dtype`` a CPU keeps an int8 copy of the weights beside the model."""
_NUM_SAMPLES = 256
_SAMPLE_BYTES = 4096
OnProgress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A model's tokenizer and chat template: all that a gateway needs."""

    tokenizer: Tokenizer
    template: ChatTemplate | None
    mark: str
    """Fingerprint of tokenizer and template: gateways and workers must have the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's text part and the folder of its weights."""

    folder: Path | None
    text: Text
    repetition_penalty: float = 1.0
    """Default repetition penalty, against loops; 1 is none."""
    embeds: Embeds | None = None
    """Set for a model that gives vectors and no text."""
    draft: Path | None = None
    """Folder of the draft model; None without one."""


def prepare_model(settings: Settings, on_progress: OnProgress) -> Model:
    """Finds the model, converting a GGUF file once; raises ``Misconfigured`` for one that cannot run."""
    if settings.engine.kind == "echo":
        return Model(folder=None, text=load_text(None), embeds=_echo_embeds(settings.engine))
    folder = find_folder(settings, on_progress)
    if settings.engine.kind == "vllm":
        check_for_vllm(folder)
        return Model(folder=folder, text=load_text(folder), repetition_penalty=_guard(settings))
    if gives_vectors(folder):
        check_vector_model(folder, found := read_vector_model(folder))
        return Model(folder=folder, text=load_text(folder), embeds=found.embeds)
    check_tensors(folder, read_architecture(folder))
    draft = find_draft(settings, on_progress) or own_head(settings)
    return Model(folder=folder, text=load_text(folder), repetition_penalty=_guard(settings), draft=draft)


def own_head(settings: Settings) -> Path | None:
    """The draft head that comes with the default model, unless the settings name another or none."""
    is_wanted = settings.model == "default" and not settings.engine.draft_model and settings.engine.speculate
    return DEFAULT_HEAD if is_wanted else None


def _guard(settings: Settings) -> float:
    return _DEFAULT_MODEL_REPETITION_PENALTY if settings.model == "default" else 1.0


def check_for_vllm(folder: Path) -> None:
    """Raises ``Misconfigured`` for a folder that vLLM is not asked to run: one without weights or without the files
    that a gateway needs. Whether it computes the model, vLLM says when it loads it."""
    if gives_vectors(folder):
        raise Misconfigured(f"{folder} gives vectors, and engine.kind = vllm is for models of text: leave it at axon")
    if not (folder / "tokenizer.json").exists():
        raise Misconfigured(f"{folder} has no tokenizer.json, by which Axon reads and writes text whatever the engine")
    find_tensors(folder)


def find_draft(settings: Settings, on_progress: OnProgress) -> Path | None:
    """The folder of the draft model, converting a GGUF file once; None without one. Raises ``Misconfigured``."""
    name = settings.engine.draft_model
    if name in ("", NO_DRAFT) or not settings.engine.speculate:
        return None
    model_name = Path(name).name.removesuffix(".gguf")
    folder = find_folder(replace(settings, model=name, model_name=model_name), on_progress)
    if not is_head(folder):  # a head is checked against its model when the engine opens both
        check_tensors(folder, read_architecture(folder))
    return folder


def _echo_embeds(engine: EngineConfig) -> Embeds | None:
    if engine.echo_dimensions:
        return Embeds(dimensions=engine.echo_dimensions)
    if not engine.echo_classes:
        return None
    labels = tuple(f"LABEL_{index}" for index in range(engine.echo_classes))
    activation = Activation.SIGMOID if len(labels) == 1 else Activation.SOFTMAX
    return Embeds(dimensions=len(labels), classes=Classes(labels=labels, activation=activation))


def prepare_text(settings: Settings) -> Text:
    """Tokenizer and template alone, from the model's folder, its conversion or its file; touches no weights."""
    if settings.engine.kind == "echo":
        return load_text(None)
    try:
        source = _source(settings)
        if source.is_dir():
            return load_text(source)
        from axon.engine.load.convert.gguf import convert_text, is_converted
    except ImportError as error:  # an installation without the engine's packages
        raise Misconfigured(
            f"Reading a .gguf file needs the package {error.name}: install axon-serving[gguf], or give the model as "
            "a folder; of a converted one, the tokenizer's files and the template are enough."
        ) from error
    if is_converted(source, folder := _conversion(settings)):
        return load_text(folder)
    with TemporaryDirectory(prefix="axon-text-") as made:
        convert_text(source, Path(made))
        return load_text(Path(made))


def load_text(folder: Path | None) -> Text:
    """Tokenizer and template of a model folder, and their fingerprint; those of the echo engine for None."""
    mark = "bytes"
    if folder is not None:
        mark = hashlib.sha256(b"".join(_content(folder / file) for file in _TEXT_FILES)).hexdigest()[:12]
    return Text(tokenizer=load_tokenizer(folder), template=load_template(folder), mark=mark)


def _source(settings: Settings) -> Path:
    """The folder or the file that ``model`` names: a path, or else a name in the models folder."""
    if settings.model == "default":
        from axon.engine.load.convert.gguf import default_gguf

        return default_gguf()
    assert settings.models_dir is not None
    source, named = Path(settings.model), settings.models_dir / settings.model
    # A .gguf file goes before the folder of this name, which may be its conversion.
    for each in (source, named.with_name(f"{named.name}.gguf"), named):
        if each.exists():
            return each
    raise Misconfigured(_no_model(settings.model, settings.models_dir))


def _no_model(written: str, models_dir: Path) -> str:
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", written):
        return f"There is no model at {written}: give a folder of safetensors or a .gguf file."
    path = shlex.quote(str(models_dir / written.rpartition("/")[2]))
    example = written if "/" in written else "MAKER/NAME"
    return (
        f"There is no model {written}, neither here nor in the models folder {models_dir}: give a folder of "
        f"safetensors or a .gguf file. Axon downloads none from a hub; `hf download {example} --local-dir {path}` does."
    )


def _conversion(settings: Settings) -> Path:
    assert settings.models_dir is not None
    return settings.models_dir / settings.model_name.replace("/", "--")


def find_folder(settings: Settings, on_progress: OnProgress) -> Path:
    """The folder of the weights, converting a GGUF file once; raises ``Misconfigured``."""
    source = _source(settings)
    if source.is_dir():
        return source
    from axon.engine.load.convert.gguf import convert_gguf, is_converted, space_needed

    folder = _conversion(settings)
    if not is_converted(source, folder):
        engine = settings.engine
        require_space(folder.parent, space_needed(source, packed=engine.device != "cuda" and engine.dtype in _PACKED))
        convert_gguf(source, folder, lambda share: on_progress("Converting the model (once)", share))
    if settings.model == "default" and not (folder / "generation_config.json").exists():
        (folder / "generation_config.json").write_text(json.dumps(_DEFAULT_MODEL_ADVICE))
    return folder


def deployment_of(name: str, model: Model, engine: Ready, now: float, *, call_format: str = "auto") -> ServedVersion:
    """The deployment; its version is a hash of weights, tokenizer, template and kernel.

    ``call_format`` is the setting of this name.
    """
    mark = hashlib.sha256(engine.kernel.encode())
    if model.folder is not None:
        for file in ("axon.json", "config.json", *_TEXT_FILES, *(_SENTENCE_FILES if model.embeds else ())):
            mark.update(_content(model.folder / file))
        if not (model.folder / "axon.json").exists():
            _sample_weights(model.folder, mark.update)
    return ServedVersion(
        name=name,
        version=f"fp_{mark.hexdigest()[:12]}",
        text=model.text.mark,
        max_model_len=engine.max_model_len,
        created=now,
        embeds=model.embeds,
        reasons=model.text.template is not None and model.text.template.reasons,
        repetition_penalty=model.repetition_penalty,
        call_format="" if call_format == "auto" else call_format,
        **_sampling_defaults(model.folder),
    )


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b"-"


def _sample_weights(folder: Path, update: Callable[[bytes], None]) -> None:
    """Hashes samples spread over the files: training changes every tensor, and reading them whole takes minutes."""
    for path in sorted({place.path for place in find_tensors(folder).values()}):
        num_bytes = path.stat().st_size
        update(f"{path.name} {num_bytes}".encode())
        with path.open("rb") as file:
            for index in range(_NUM_SAMPLES):
                file.seek(num_bytes * index // _NUM_SAMPLES)
                update(file.read(_SAMPLE_BYTES))


def _sampling_defaults(folder: Path | None) -> dict[str, Any]:
    """Sampling defaults of the model's generation_config.json; 0 temperature for the echo engine."""
    if folder is None:
        return {"temperature": 0.0}
    path = folder / "generation_config.json"
    advice = json.loads(path.read_text()) if path.exists() else {}
    known = {"temperature": float, "top_p": float, "top_k": int}
    return {name: kind(advice[name]) for name, kind in known.items() if advice.get(name) is not None}
