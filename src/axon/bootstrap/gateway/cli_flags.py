"""The flags with which a command finds what this server uses, for the pages that show commands. Tells no secret."""

from pathlib import Path
from typing import TYPE_CHECKING

from axon.runtime.service_url import shown
from axon.settings import Settings, variable_of

if TYPE_CHECKING:
    from axon.gateway.pages.parts import CliFlags

_WITHOUT_FLAG = ("store_file", "live", "live_file", "namespace", "pepper", "service_ca_file")
"""Settings that commands on the store read and that not every one of them has a flag for."""
_MEMORY = "memory://"


def cli_flags(settings: Settings, *, default_data_dir: Path) -> "CliFlags":
    """Returns the flags that differ from what a command does by itself, which uses ``default_data_dir``.

    A settings file is named as a whole; what did not come from one gets its own flag. A URL with a password is not
    told: then the variable is named that must have it.
    """
    from axon.gateway.pages.parts import CliFlags

    origins = {name: settings.origins.get(name, "default") for name in ("data_dir", "store", *_WITHOUT_FLAG)}
    files = dict.fromkeys(origin for name, origin in settings.origins.items() if _is_file(name, origin))
    common = [word for file in files for word in ("--config", str(Path(file).absolute()))]
    if settings.data_dir != default_data_dir and not _is_file("data_dir", origins["data_dir"]):
        common += ["--data-dir", str(settings.data_dir)]
    store, variables = list(common), []
    if origins["store"] in ("flag", variable_of("store")):
        if shown(settings.store) == settings.store:
            store += ["--store", settings.store]
        else:
            variables.append(variable_of("store"))
    variables += [variable_of(name) for name in _WITHOUT_FLAG if origins[name] in ("flag", variable_of(name))]
    return CliFlags(
        store=tuple(store), server=tuple(common), by_address=settings.live != _MEMORY, variables=tuple(variables)
    )


def _is_file(name: str, origin: str) -> bool:
    """Whether a setting's value comes from a settings file, whose path the origin is then."""
    return origin not in ("default", "flag", "LeaderWorkerSet", variable_of(name), f"{name}_file")
