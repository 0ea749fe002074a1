"""Fetches the files of a version and says what they are, opens them to run, or reads their text. Registers nothing."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from axon.bootstrap.models.model import Text, check_for_vllm, load_text
from axon.bootstrap.models.preflight import require_space
from axon.bootstrap.models.vllm import find_vllm, vllm_hint
from axon.bootstrap.models.vllm_model import architecture_of, context_of, unknown_to_vllm
from axon.domain.model.embeds import Embeds
from axon.domain.registry.model import Capability, vector_capabilities
from axon.domain.registry.version import Advice, EngineSettings, Version
from axon.domain.tenants.tenant import check_id
from axon.engine.config import EngineConfig
from axon.errors import FetchFailed, InvalidInput, Misconfigured, UnknownModel
from axon.runtime.clock import Clock, SystemClock
from axon.settings import Settings
from axon.text.template import ChatTemplate, Message
from axon.weights.cache import Weights, WeightsCache
from axon.weights.opening import open_source
from axon.weights.progress import OnProgress, ignore
from axon.weights.source import Source, parse_source
from axon.weights.text import drop_text, fetch_text

_NO_GGUF = "; vLLM may run it from a folder of safetensors"
_TOOL: Message = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedVersion:
    """A version that is ready to be registered, and what was found in its files."""

    version: Version
    capabilities: tuple[Capability, ...]
    """What the template shows; empty for a model that only completes text."""
    files: tuple[tuple[str, int], ...]
    """Name and size in bytes."""
    skipped: tuple[tuple[str, str], ...]
    """Files of the source that were left there, with the reason."""
    folder: Path

    @property
    def num_bytes(self) -> int:
        return sum(size for _, size in self.files)


async def fetch_version(
    settings: Settings,
    *,
    model: str,
    source: str,
    label: str = "",
    engine: str = "",
    on_progress: OnProgress = ignore,
    clock: Clock | None = None,
) -> FetchedVersion:
    """Fetches what SOURCE has now into the weights cache; raises ``InvalidInput`` or ``FetchFailed``.

    Without a label the version is called by the first twelve digits of its digest. ``engine`` is the kind that runs it;
    empty for the server's own choice.
    """
    for what, name in (("name", model), ("label", label or "v1")):
        check_id(name, param=what)
    location = parse_source(source)
    origin = open_source(location, timeout_s=settings.weights.timeout_s)
    try:
        async with weights_cache(settings).opened(origin, on_progress=on_progress) as weights:
            kind = engine or settings.engine.kind
            facts = await asyncio.to_thread(_read_facts, weights, location.text, kind, settings.engine)
    finally:
        await origin.aclose()
    version = Version(
        model=model,
        label=label or weights.digest[:12],
        source=location.text,
        source_revision=weights.revision,
        digest=weights.digest,
        text=facts.text.mark,
        max_model_len=facts.max_model_len,
        settings=EngineSettings(kind=engine),
        advice=facts.advice,
        embeds=facts.embeds,
        reasons=facts.text.template is not None and facts.text.template.reasons,
        created=(clock or SystemClock()).now(),
    )
    return FetchedVersion(
        version=version,
        capabilities=vector_capabilities(facts.embeds) if facts.embeds else capabilities_of(facts.text.template),
        files=tuple((entry.name, entry.size) for entry in weights.manifest.files),
        skipped=weights.skipped,
        folder=weights.folder,
    )


@asynccontextmanager
async def opened_version(
    settings: Settings, version: Version, *, full: bool = False, on_progress: OnProgress = ignore
) -> AsyncIterator[Path]:
    """The folder that an engine can load, fetched, checked and converted as needed; not evicted while it is open."""
    origin = _origin(settings, version)
    try:
        opened = weights_cache(settings).opened(origin, digest=version.digest, full=full, on_progress=on_progress)
        async with opened as weights:
            yield await asyncio.to_thread(_runnable, weights, settings)
    finally:
        await origin.aclose()


async def fetch_version_text(settings: Settings, version: Version) -> Text:
    """Tokenizer and template of a registered version, without its weights; raises ``FetchFailed`` if they differ."""
    assert settings.models_dir is not None
    origin = _origin(settings, version)
    try:
        folder = await fetch_text(
            origin, settings.models_dir, version.digest, convert=_convert_text, timeout_s=settings.weights.timeout_s
        )
    finally:
        await origin.aclose()
    try:
        text = await asyncio.to_thread(load_text, folder)
        if text.mark != version.text:
            raise FetchFailed(
                f"Tokenizer and template of {version.source} are not those of {version.id}: the fingerprint was "
                f"{version.text} and is {text.mark}. Restore the files there, or register them as a new version.",
                code="source_changed",
            )
    except Exception:
        await asyncio.to_thread(drop_text, folder)  # the next try fetches what is there then
        raise
    return text


def capabilities_of(template: ChatTemplate | None) -> tuple[Capability, ...]:
    """What a model can do, as far as its template shows it; an operator may know better."""
    if template is None:
        return ()
    found = [Capability.CHAT]
    if _takes_tools(template):
        found.append(Capability.TOOLS)
    if template.reasons:
        found.append(Capability.REASONING)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    text: Text
    max_model_len: int
    advice: Advice
    embeds: Embeds | None = None


def _read_facts(weights: Weights, source: str, kind: str, engine: EngineConfig) -> _Facts:
    """Reads what a version records; raises ``InvalidInput`` for a model that an engine of this kind could not run."""
    try:
        if not weights.gguf:
            _refuse_adapter(weights.folder)
        if kind == "vllm":
            return _vllm_facts(weights, engine)
        return _gguf_facts(weights.gguf) if weights.gguf else _folder_facts(weights.folder, checks_tensors=True)
    except Misconfigured as error:
        hint = ""
        if kind != "vllm" and isinstance(error, UnknownModel):
            hint = _NO_GGUF if weights.gguf else vllm_hint(engine, architecture_of(weights.folder))
        raise _not_served(source, weights, f"{error.message}{hint}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        # Whatever is in the files, whoever adds them hears of it in a sentence.
        raise _not_served(
            source, weights, f"its files cannot be understood: {type(error).__name__}, {error}"
        ) from error


def _not_served(source: str, weights: Weights, why: str) -> InvalidInput:
    """The refusal in one line, with the path that was given in place of that in the cache."""
    said = " ".join(why.replace(str(weights.gguf or weights.folder), source).split())
    return InvalidInput(f"{source} cannot be served: {said}", param="source")


def _vllm_facts(weights: Weights, engine: EngineConfig) -> _Facts:
    """What is known of a model that vLLM runs: its table of models is looked into where it is here."""
    if weights.gguf is not None:
        return _gguf_facts(weights.gguf)
    check_for_vllm(weights.folder)
    architecture = architecture_of(weights.folder)
    if engine.vllm_python and not find_vllm(engine).knows(architecture):
        raise Misconfigured(unknown_to_vllm(weights.folder, architecture))
    length = context_of(weights.folder)
    return _Facts(text=load_text(weights.folder), max_model_len=length, advice=_advice(weights.folder))


def _gguf_facts(gguf: Path) -> _Facts:
    try:
        from axon.engine.load.convert.gguf import convert_config
    except ImportError as error:
        raise _no_gguf(error) from error
    with TemporaryDirectory(prefix="axon-text-") as made:
        convert_config(gguf, Path(made))
        _convert_text(gguf, Path(made))
        return _folder_facts(Path(made), checks_tensors=False)


def _refuse_adapter(folder: Path) -> None:
    """Raises ``Misconfigured`` for a LoRA adapter, also for one with the config.json of its model beside it."""
    from axon.engine.load.adapter_config import CONFIG as ADAPTER_CONFIG

    if (folder / ADAPTER_CONFIG).is_file() and all(
        path.stem == "adapter_model" for path in folder.glob("*.safetensors")
    ):
        raise Misconfigured(
            f"it is a LoRA adapter ({ADAPTER_CONFIG}), not a model: add the model that it was trained on, and then it "
            f"with `axon models adapters add MODEL NAME {folder}`"
        )


def _folder_facts(folder: Path, *, checks_tensors: bool) -> _Facts:
    from axon.engine.load.architecture import read_architecture
    from axon.engine.load.tensor_files import check_tensors
    from axon.engine.load.vector_model import check_vector_model, gives_vectors, read_vector_model

    if gives_vectors(folder):
        found = read_vector_model(folder)
        if checks_tensors:
            check_vector_model(folder, found)
        text = load_text(folder)
        return _Facts(text=text, max_model_len=found.max_model_len, advice=Advice(), embeds=found.embeds)

    architecture = read_architecture(folder)
    if checks_tensors:
        check_tensors(folder, architecture)
    return _Facts(text=load_text(folder), max_model_len=architecture.max_model_len, advice=_advice(folder))


def _advice(folder: Path) -> Advice:
    path = folder / "generation_config.json"
    stated = json.loads(path.read_text()) if path.exists() else {}
    known = {"temperature": float, "top_p": float, "top_k": int, "repetition_penalty": float}
    advice = {name: kind(stated[name]) for name, kind in known.items() if stated.get(name) is not None}
    if unusable := [name for name, value in advice.items() if not 0 <= value < math.inf]:
        raise Misconfigured(f"{path} cannot be read: {unusable[0]} is no number from 0 on")
    return Advice(**advice)


def _takes_tools(template: ChatTemplate) -> bool:
    """Whether the prompt of a chat with a tool differs from that of one without."""
    messages = [{"role": "user", "content": "x"}]
    try:
        return template.render(messages, tools=[_TOOL]) != template.render(messages)
    except InvalidInput:
        return False


def _runnable(weights: Weights, settings: Settings) -> Path:
    """The folder of safetensors; a .gguf file is converted once, beside itself, and evicted with it."""
    if weights.gguf is None:
        return weights.folder
    from axon.engine.load.convert.gguf import convert_gguf, is_converted, space_needed

    folder, engine = weights.folder / "converted", settings.engine
    if not is_converted(weights.gguf, folder):
        packed = engine.device != "cuda" and engine.dtype in ("auto", "int8")
        require_space(weights.folder, space_needed(weights.gguf, packed=packed))
        convert_gguf(weights.gguf, folder)
    return folder


def _convert_text(gguf: Path, folder: Path) -> None:
    try:
        from axon.engine.load.convert.gguf import convert_text
    except ImportError as error:
        raise _no_gguf(error) from error
    convert_text(gguf, folder)


def _no_gguf(error: ImportError) -> Misconfigured:
    """The error of an installation without the engine's packages."""
    return Misconfigured(
        f"Reading a .gguf file needs the package {error.name}: install axon-serving[gguf], or give the model as "
        "safetensors."
    )


def _origin(settings: Settings, version: Version) -> Source:
    return open_source(
        parse_source(version.source), revision=version.source_revision, timeout_s=settings.weights.timeout_s
    )


def weights_cache(settings: Settings) -> WeightsCache:
    """The cache of fetched files, models and adapters alike."""
    assert settings.models_dir is not None
    return WeightsCache(settings.models_dir, settings.weights)
