"""The text of a registered version that cannot be loaded: the operator is told why, a tenant is not."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from axon.bootstrap.models.fetching import fetch_version
from axon.bootstrap.models.version_text import text_loader
from axon.domain.registry.version import Version
from axon.errors import Unavailable
from axon.sessions.prompt import Threads
from axon.settings import Settings
from tests.weights.models import make_model


@pytest.fixture
async def registered(tmp_path: Path) -> Version:
    make_model(tmp_path / "tiny")
    return (
        await fetch_version(Settings(data_dir=tmp_path / "worker"), model="tiny", source=str(tmp_path / "tiny"))
    ).version


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("tokenizer.json", b"{}", "cannot be read"),
        ("tokenizer_config.json", b"[]", "tokenizer_config.json cannot be read: it is no JSON object"),
        ("config.json", b"null", "config.json cannot be read: it is no JSON object"),
        ("generation_config.json", b"[1]", "generation_config.json cannot be read: it is no JSON object"),
        ("chat_template.jinja", b"another", "are not those"),
    ],
)
async def test_what_is_wrong_is_in_the_log_alone_and_gone_once_it_is_mended(
    registered: Version, tmp_path: Path, name: str, content: bytes, word: str
) -> None:
    path = tmp_path / "tiny" / name
    before = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    with closing(Threads()) as threads, capture_logs() as lines:
        load = text_loader(Settings(data_dir=tmp_path / "gateway"), threads)
        with pytest.raises(Unavailable) as refusal:
            await load(registered)
        assert refusal.value.message == f"The tokenizer of {registered.id} cannot be loaded now; try again later."
        (line,) = [each for each in lines if each["event"] == "text.not_loaded"]
        assert (line["version"], line["source"]) == (registered.id, str(tmp_path / "tiny"))
        assert word in line["error"]
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)
        assert await load(registered)


async def test_a_text_that_was_registered_wrongly_is_told_likewise(registered: Version, tmp_path: Path) -> None:
    with closing(Threads()) as threads, pytest.raises(Unavailable, match="cannot be loaded now"):
        await text_loader(Settings(data_dir=tmp_path / "gateway"), threads)(replace(registered, text="another"))
