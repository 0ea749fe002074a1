"""Names of a model's files: which are safe to write below a folder, and which are wanted. Touches no disk."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from axon.errors import InvalidInput
from axon.weights.source import MAX_FILES, StatedFile, too_many

MANIFEST = "axon-files.json"
"""The manifest's own name, which no file of a model may have."""
SUMS = "SHA256SUMS"
"""A file of digests as sha256sum writes it; it is read, not kept."""
TEXT_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json", "generation_config.json")
"""All that a gateway needs of a folder: tokenizer, template and end tokens."""
OWN_FILES = ("native-int8.bin", "native-int8.json", "axon.json")
"""What Axon itself writes beside a model that it serves: packed weights, and where a conversion came from. They are no
part of the model, so its digest is the same before and after it was served."""
_WANTED = (".safetensors", ".gguf", ".json", ".jinja")
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".npy", ".npz", ".h5", ".msgpack", ".joblib")
_MAX_PART_BYTES = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SPLIT = re.compile(r"(.*)-\d{5}-of-(\d{5})\.gguf\Z")
_MODULE_CONFIG = re.compile(r"\d{1,2}_[A-Za-z]{1,40}/config\.json")
_MODEL_WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The files of a source that are fetched, and why others are not."""

    files: tuple[StatedFile, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    """Name and reason."""

    @property
    def num_bytes(self) -> int:
        return sum(file.size for file in self.files)


def refusal(name: str) -> str | None:
    """Why a file of this name is not written below a folder; None for a safe name."""
    if not name:
        return "it is empty"
    if "\\" in name:
        return "it has a backslash"
    if any(ord(char) < 32 or ord(char) == 127 or 0xD800 <= ord(char) < 0xE000 for char in name):
        return "it has a control character"
    if name.startswith("/"):
        return "it is absolute"
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "it leads out of the folder"
    if any(len(part.encode()) > _MAX_PART_BYTES for part in parts):
        return "it is too long"
    if name == MANIFEST:
        return "Axon uses this name itself"
    return None


def check_name(name: str) -> None:
    """Raises ``InvalidInput`` for an unsafe name: a source that has one is not to be trusted with the others."""
    if reason := refusal(name):
        raise InvalidInput(f"The source has a file named {name!r}, which is refused: {reason}. Nothing was fetched.")


def check_digest(digest: str) -> None:
    """Raises ``InvalidInput`` for what is no digest: folders are named by it."""
    if not _DIGEST.fullmatch(digest):
        raise InvalidInput(f"{digest!r} is no digest: it must have 64 digits from 0 to f.", param="digest")


def choose(files: Sequence[StatedFile], *, file: str = "", where: str = "the source") -> Chosen:
    """The files of a model; raises ``InvalidInput`` where there is none, or more than one.

    ``file`` names a .gguf file, of which all parts are taken. Without it, safetensors go before .gguf files.
    """
    _check_files(files, where)
    if file:
        return _choose_gguf(files, file, where)
    top = [each for each in files if "/" not in each.name or is_module_config(each.name)]
    kept = [each for each in top if each.name.endswith(_WANTED) and each.name not in OWN_FILES]
    names = {*OWN_FILES, *(each.name for each in kept)}
    skipped = [(each.name, _why_not(each.name)) for each in files if each.name not in names]
    if any(each.name.endswith(".safetensors") for each in kept):
        return _choose_safetensors(kept, skipped)
    models = {_split_name(each.name) for each in files if each.name.endswith(".gguf")}
    if len(models) == 1:
        first = next(each.name for each in files if each.name.endswith(".gguf"))
        return _choose_gguf(files, first, where)
    if models:
        listed = ", ".join(sorted(models)[:8])
        raise InvalidInput(f"{where} has {len(models)} .gguf models: add the name of one to the source ({listed}).")
    if any(each.name.endswith(_PICKLED) for each in files):
        raise InvalidInput(
            f"{where} has pickled weights only, which are never read, because they can run code: convert them to "
            "safetensors first."
        )
    raise InvalidInput(f"{where} has no model: there is neither a .safetensors nor a .gguf file.")


def _check_files(files: Sequence[StatedFile], where: str) -> None:
    """Raises ``InvalidInput`` for files that no model has: then nothing that the source says is to be trusted."""
    if len(files) > MAX_FILES:
        raise too_many(where)
    for each in files:
        check_name(each.name)
        if each.size < 0:
            raise InvalidInput(f"{where} states a size of {each.size} bytes for {each.name!r}. Nothing was fetched.")
    if len({each.name for each in files}) < len(files):
        raise InvalidInput(f"{where} has two files of one name. Nothing was fetched.")


def is_module_config(name: str) -> bool:
    """Whether a file configures a sentence-transformers module in a folder of its own (``1_Pooling/config.json``)."""
    return _MODULE_CONFIG.fullmatch(name) is not None


def is_pickled(name: str) -> bool:
    """Whether loading this file could run code."""
    return name.endswith(_PICKLED)


def _choose_gguf(files: Sequence[StatedFile], file: str, where: str) -> Chosen:
    wanted = {file}
    if match := _SPLIT.match(file):
        wanted = {f"{match[1]}-{number:05}-of-{match[2]}.gguf" for number in range(1, int(match[2]) + 1)}
    kept = tuple(each for each in files if each.name in wanted)
    if missing := sorted(wanted - {each.name for each in kept}):
        raise InvalidInput(f"{where} has no file {missing[0]}.")
    skipped = tuple((each.name, "another file") for each in files if each.name not in wanted)
    return Chosen(files=kept, skipped=skipped)


def _choose_safetensors(kept: Sequence[StatedFile], skipped: Sequence[tuple[str, str]]) -> Chosen:
    """Drops .gguf files and, beside weights of the usual names, a second copy under other ones (``consolidated``)."""
    usual = any(_MODEL_WEIGHTS.match(each.name) for each in kept)
    files, more = [], list(skipped)
    for each in kept:
        if each.name.endswith(".gguf"):
            more.append((each.name, "the safetensors are taken"))
        elif usual and each.name.endswith(".safetensors") and not _MODEL_WEIGHTS.match(each.name):
            more.append((each.name, "a second copy of the weights"))
        else:
            files.append(each)
    return Chosen(files=tuple(files), skipped=tuple(more))


def _why_not(name: str) -> str:
    if is_pickled(name):
        return "pickled weights can run code"
    return "not at the top of the folder" if "/" in name else "no part of a model that Axon reads"


def _split_name(name: str) -> str:
    """The first part's name stands for a split file."""
    match = _SPLIT.match(name)
    return f"{match[1]}-00001-of-{match[2]}.gguf" if match else name
