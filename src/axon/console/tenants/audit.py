"""``axon audit``: who changed what, straight from the store."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.administration import in_store, moment, show_json
from axon.console.flags import ConfigFile, DataDir, Json, Store, of_store
from axon.domain.audit import AuditEntry, AuditPage, differences
from axon.errors import NotFound
from axon.tenants.facts import audit_facts

if TYPE_CHECKING:
    from axon.bootstrap.administration import Administration

_MOST_FIELDS = 6


def audit(
    text: Annotated[
        str | None, typer.Option("--text", help="Only entries with this in their name, actor, action or record.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Only this kind of record, such as tenant, plan, key, price or deployment.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many entries, the newest first.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Only entries that are older than this one.")] = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show who changed what: tenants, plans, keys, drained workers and the registry, the newest first.

    \b
    Examples:
      axon audit
      axon audit --kind key --text acme
      axon audit --limit 200 --json
    """
    settings = of_store(store, data_dir, config_file)

    async def act(admin: "Administration") -> list[AuditEntry]:
        found: list[AuditEntry] = []
        last, has_more = after or "", True
        while has_more and len(found) < limit:
            asked = admin.audit.page(limit=limit - len(found), after=last, kind=kind or "", text=text or "")
            page = _known(await asked, last)
            found += page.entries
            last, has_more = (found[-1].id if found else last), page.has_more
        return found

    found = in_store(settings, act)
    if as_json:
        show_json([audit_facts(entry) for entry in found])
        return
    if not found:
        print("Nothing that matches was changed.", file=sys.stderr)
        return
    from axon.console.tables import print_table

    rows = [(e.id, moment(e.at) or "-", e.actor, f"{e.action} {e.kind}", e.name, _fields(e)) for e in found]
    print_table(("id", "when", "who", "did", "what", "fields"), rows)


def _known(page: AuditPage | None, after: str) -> AuditPage:
    if page is None:
        raise NotFound(f"There is no entry {after}. `axon audit` shows them.")
    return page


def _fields(entry: AuditEntry) -> str:
    """The fields that differ, on one line; of many, the first."""
    facts = audit_facts(entry)
    found = [each for each in differences(facts["before"], facts["after"]) if each.path != "revision"]
    more = f", {len(found) - _MOST_FIELDS} more" if len(found) > _MOST_FIELDS else ""
    return ", ".join(each.words() for each in found[:_MOST_FIELDS]) + more
