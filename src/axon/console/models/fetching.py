"""``axon models add``: fetches a model with a progress bar, registers the version that it is and shows it."""

import asyncio
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bars

from axon.console.administration import ACTOR, show_json

if TYPE_CHECKING:
    from axon.bootstrap.models.fetching import FetchedVersion
    from axon.registry.catalog import Catalog
    from axon.settings import Settings
    from axon.weights.progress import Progress

_STAGES = {
    "fetching": "Fetching",
    "waiting": "Another process fetches it",
    "checking": "Checking digests",
}


async def register(catalog: "Catalog", fetched: "FetchedVersion", *, deploys: bool) -> None:
    """Registers the version; a model that is not registered yet is, too. ``deploys`` makes a deployment of its name."""
    from axon.domain.registry.deployment import Deployment
    from axon.domain.registry.model import Capability, Model

    version = fetched.version
    snapshot = await catalog.snapshot()
    if version.model not in snapshot.models:
        model = Model(
            name=version.model,
            capabilities=fetched.capabilities or (Capability.CHAT,),
            max_model_len=version.max_model_len,
            created=0.0,
        )
        await catalog.add_model(model, version, deploys=deploys, actor=ACTOR)
        return
    known = snapshot.versions.get(version.id)
    if known is None or known.digest != version.digest:  # the same one again changes nothing
        await catalog.add_version(version, actor=ACTOR)
    if deploys and version.model not in snapshot.deployments:
        made = Deployment(name=version.model, model=version.model, created=0.0)
        await catalog.create_deployment(made, version.id, actor=ACTOR)


def show_fetched(fetched: "FetchedVersion", *, deploys: bool, as_json: bool) -> None:
    """Shows what was fetched and registered, and how it comes to run."""
    if as_json:
        show_json(facts(fetched))
        return
    model, label = fetched.version.model, fetched.version.label
    print(summary(fetched))
    if deploys:
        print(f"`axon serve` loads it by itself; in a fleet run: axon worker --deployment {model}")
    else:
        print(f"To run it: axon deployments create NAME --model {model} --version {label}, or axon rollouts start")


def fetch(settings: "Settings", name: str, source: str, *, label: str = "", engine: str = "") -> "FetchedVersion":
    """Fetches the model with a bar on standard error."""
    from axon.bootstrap.models.fetching import fetch_version
    from axon.console.administration import quiet

    quiet(settings)
    shown = FetchProgress(Console(stderr=True))
    try:
        fetching = fetch_version(
            settings, model=name, source=source, label=label, engine=engine, on_progress=shown.update
        )
        fetched = asyncio.run(fetching)
    except KeyboardInterrupt:
        shown.close()
        print("axon: Stopped. The same command goes on where it was.", file=sys.stderr)
        raise
    finally:
        shown.close()
    for skipped, reason in fetched.skipped:
        print(f"axon: left out {skipped}: {reason}", file=sys.stderr)
    return fetched


def facts(fetched: "FetchedVersion") -> dict[str, object]:
    """The version as JSON, with what was found in its files."""
    version = fetched.version
    return {
        "id": version.id,
        "model": version.model,
        "label": version.label,
        "source": version.source,
        "source_revision": version.source_revision,
        "digest": version.digest,
        "text": version.text,
        "max_model_len": version.max_model_len,
        "reasons": version.reasons,
        "capabilities": list(fetched.capabilities),
        "num_bytes": fetched.num_bytes,
        "files": [{"name": name, "size": size} for name, size in fetched.files],
        "folder": str(fetched.folder),
    }


def summary(fetched: "FetchedVersion") -> str:
    """The version on a few lines, for people."""
    from axon.weights.space import size_text

    version = fetched.version
    revision = f"  (revision {version.source_revision[:12]})" if version.source_revision else ""
    can = ", ".join(fetched.capabilities) or "completions only: it has no chat template"
    return f"""
  Version   {version.id}
  Source    {version.source}{revision}
  Digest    {version.digest}
  Files     {len(fetched.files)}, {size_text(fetched.num_bytes)}, in {fetched.folder}
  Text      {version.text}
  Context   {version.max_model_len:,} tokens
  Can       {can}
"""


class FetchProgress:
    """A bar with rate and time left for people; elsewhere a line for each stage and each tenth."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Bars | None = None
        self._task: TaskID | None = None
        self._said = ("", -1)

    def update(self, progress: "Progress") -> None:
        stage = _STAGES[progress.stage]
        if not self._console.is_terminal:
            self._say(stage, progress)
            return
        if self._bars is None or self._task is None:
            self._bars = Bars(
                *(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn()),
                *(TransferSpeedColumn(), TimeRemainingColumn()),
                console=self._console,
                transient=True,
            )
            self._task = self._bars.add_task(stage, total=progress.total_bytes)
            self._bars.start()
        if stage != self._said[0]:
            self._bars.reset(self._task, description=stage)
            self._said = (stage, 0)
        self._bars.update(self._task, total=progress.total_bytes, completed=progress.done_bytes)

    def close(self) -> None:
        """Clears the bar. Idempotent."""
        if self._bars is not None:
            self._bars.stop()
        self._bars = self._task = None

    def _say(self, stage: str, progress: "Progress") -> None:
        """One line a tenth, with rate and time left."""
        tenth = 10 * progress.done_bytes // progress.total_bytes if progress.total_bytes else 10
        if (stage, tenth) == self._said:
            return
        self._said = (stage, tenth)
        done, total = progress.done_bytes / 1e6, progress.total_bytes / 1e6
        left = f", {progress.rate / 1e6:.1f} MB/s, {progress.left_s:.0f} s left" if progress.left_s else ""
        self._console.print(f"axon: {stage}: {done:,.1f} of {total:,.1f} MB{left}", markup=False, highlight=False)
