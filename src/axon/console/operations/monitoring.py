"""``axon monitoring``: writes the dashboards, alert rules and alert routes of this release into a folder."""

from pathlib import Path
from typing import Annotated

import typer

from axon.errors import Misconfigured


def monitoring(
    folder: Annotated[Path, typer.Argument(help="Where to write them; files of the same names are replaced.")],
    runbooks: Annotated[
        str | None, typer.Option(metavar="URL", help="Where you publish docs/runbooks, for the links in alerts.")
    ] = None,
) -> None:
    """Write dashboards for Grafana, and rules and routes for Prometheus and Alertmanager.

    \b
    Examples:
      axon monitoring ./monitoring
      axon monitoring /etc/axon/monitoring --runbooks https://wiki.example/axon/runbooks
    """
    from axon.monitoring.alert import RUNBOOKS
    from axon.monitoring.files import files, write

    made = files(runbooks=runbooks or RUNBOOKS)
    try:
        write(folder, made)
    except OSError as error:
        raise Misconfigured(f"{folder} cannot be written: {error.strerror}. Name another folder.") from error
    for name in made:
        typer.echo(folder / name)
