"""``axon models``: what a running server offers, or what lies in the models folder. Opens no weights."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from axon.console.server import Server
from axon.errors import Unavailable

if TYPE_CHECKING:
    from axon.settings import Settings


def show(settings: "Settings", *, url: str | None, key: str | None, as_json: bool) -> None:
    """Lists the models, and says whose they are."""
    with Server.find(settings, url=url, key=key) as server:
        try:
            listed = [{"id": name, "where": server.url} for name in server.models()]
        except Unavailable:
            # Somebody who named a server wants to hear that it does not answer.
            if url is not None:
                raise
            listed = _on_disk(settings)
            print(f"No server answers at {server.url}; these are on disk:", file=sys.stderr)
    if as_json:
        print(json.dumps(listed, indent=2))
        return
    from axon.console.tables import print_table

    print_table(("model", "where"), [(each["id"], each["where"]) for each in listed])


def _on_disk(settings: "Settings") -> list[dict[str, str]]:
    packaged = {"id": "smollm2-135m-instruct", "where": "packaged (--model default)"}
    folder = settings.models_dir or Path()
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [packaged, *({"id": _name(path), "where": str(path)} for path in found if _is_model(path))]


def _is_model(path: Path) -> bool:
    return path.suffix == ".gguf" or any(path.glob("*.safetensors"))


def _name(path: Path) -> str:
    return path.stem if path.suffix == ".gguf" else path.name
