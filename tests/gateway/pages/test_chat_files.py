"""The files of the chat page: what a browser loads before it paints, and how much that is."""

import re
from pathlib import Path

from axon.gateway.pages.assets import Assets

_MOST_BYTES = 200_000
_LOADED = re.compile(r'(?:href|src)="(ui/[^"]+)"')
_IMPORTED = re.compile(r'from "(\.[^"]+)"')


def loaded(assets: Assets) -> dict[str, int]:
    """Bytes of each file that the page needs, as they are sent, by its path."""
    index = assets.page("chat", "index.html")
    found = {"index.html": len(index.compressed or index.content)}
    waiting = _LOADED.findall(index.content.decode())
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        _, room, name = path.split("/")
        asset = assets.file(room, name)
        found[path] = len(asset.compressed or asset.content)
        if name.endswith(".js"):
            folder = Path("/ui") / room
            for each in _IMPORTED.findall(asset.content.decode()):
                waiting.append(str((folder / each).resolve()).lstrip("/"))
    return found


def test_the_first_paint_takes_less_than_200_kb() -> None:
    found = loaded(Assets())
    assert {"ui/chat/thread.js", "ui/chat/plain.js", "ui/common/api.js", "ui/common/theme.css"} <= set(found)
    assert sum(found.values()) < _MOST_BYTES, found


def test_every_file_of_the_chat_is_loaded_by_it() -> None:
    folder = Path(__file__).parents[3] / "src/axon/gateway/ui/chat"
    here = {f"ui/chat/{path.name}" for path in folder.iterdir()} - {"ui/chat/index.html"}
    assert here <= set(loaded(Assets()))


def test_no_file_of_the_chat_writes_html_or_styles_into_the_page() -> None:
    folder = Path(__file__).parents[3] / "src/axon/gateway/ui/chat"
    for path in folder.iterdir():
        text = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"):
            assert word not in text, f"{path.name} has {word}"
        assert not re.search(r"<[^>]+\s(?:on\w+|style)=", text), path.name
