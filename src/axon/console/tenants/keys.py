"""``axon keys``: API keys straight in the store. Knows no server; a running one reads the same store."""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.administration import (
    ACTOR,
    check_id_flag,
    check_known,
    check_name_flag,
    in_store,
    moment,
    quiet,
    seconds,
    show_json,
    warn_of_reserves,
)
from axon.console.flags import ConfigFile, DataDir, Json, Live, Store, of_store
from axon.domain.tenants.key import HOLDER, Key, Scope, parse_key
from axon.errors import Conflict, DependencyDown, Misconfigured, NotFound
from axon.runtime.clock import SystemClock
from axon.tenants.facts import key_facts

if TYPE_CHECKING:
    from axon.bootstrap.administration import Administration

app = typer.Typer(help="Make, list, rotate and revoke API keys.", no_args_is_help=True)

_LONGEST_ID = 16
"""Characters; ids have 8. What is longer may be a piece of a key."""
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as in `axon keys list`, or the whole key.")]
ExpiresIn = Annotated[str | None, typer.Option("--expires-in", metavar="TIME", help="Such as 30d, 12h or 90m.")]


@app.command()
def create(
    tenant: Annotated[str, typer.Option(help="Who is billed and isolated; made if it is a new one.")] = "default",
    name: Annotated[str, typer.Option(help="A reminder of what the key is for.")] = "",
    scope: Annotated[
        list[Scope] | None, typer.Option(help="What it may do; repeatable. Without any: inference and read.")
    ] = None,
    expires_in: ExpiresIn = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Make an API key and show it, this once.

    \b
    Examples:
      axon keys create --tenant acme --name laptop
      axon keys create --tenant ops --scope admin --expires-in 90d
      export AXON_API_KEY=$(axon keys create --tenant acme)
    """
    settings = of_store(store, data_dir, config_file)
    life_s = _life_s(expires_in)
    check_id_flag("--tenant", tenant)
    check_name_flag(name)

    async def act(admin: "Administration") -> tuple[Key, str]:
        await _make_tenant(admin, tenant)
        return await admin.keyring.create(tenant, name=name, scopes=scope or HOLDER, expires_in_s=life_s, actor=ACTOR)

    _show_once(*in_store(settings, act, makes=True), as_json=as_json)


@app.command("list")
def index(
    tenant: Annotated[str | None, typer.Option(help="Of this tenant alone.")] = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """List the API keys, without their secrets.

    \b
    Examples:
      axon keys list
      axon keys list --tenant acme
      axon keys list --json | jq -r '.[].id'
    """
    settings = of_store(store, data_dir, config_file)
    now = SystemClock().now()

    async def act(admin: "Administration") -> Sequence[Key]:
        found = await admin.keyring.all(tenant=tenant)
        if tenant is not None and not found:
            await check_known(admin, tenant, now)
        return found

    found = in_store(settings, act)
    if as_json:
        show_json([key_facts(key, now) for key in found])
        return
    if not found:
        print("There are no keys yet. Make one with `axon keys create`.", file=sys.stderr)
        return
    from axon.console.tables import print_table

    print_table(
        ("id", "tenant", "name", "scopes", "created", "expires", "last used", "status"),
        [
            (
                *(key.id, key.tenant, key.name or "-", ",".join(sorted(key.scopes))),
                *(moment(at) or "-" for at in (key.created_at, key.expires_at, key.last_used_at)),
                key.state(now),
            )
            for key in found
        ],
    )


@app.command()
def rotate(
    key_id: KeyId,
    overlap: Annotated[str, typer.Option(metavar="TIME", help="How long the old key stays good, at most 30d.")] = "1h",
    expires_in: ExpiresIn = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Make a new key in place of an old one, which stays good for a while. Shows the new one, this once.

    \b
    Examples:
      axon keys rotate 3f9c2k7q
      axon keys rotate 3f9c2k7q --overlap 7d --expires-in 90d
    """
    settings = of_store(store, data_dir, config_file)
    overlap_s, life_s = _overlap_s(overlap), _life_s(expires_in)
    key, text = in_store(
        settings, lambda admin: admin.keyring.rotate(_id(key_id), overlap_s=overlap_s, expires_in_s=life_s, actor=ACTOR)
    )
    _show_once(key, text, as_json=as_json)


@app.command()
def revoke(
    key_id: KeyId,
    live: Live = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Revoke an API key for good.

    With --live (or its setting) every gateway knows at once, also while the store is away.

    \b
    Example:
      axon keys revoke 3f9c2k7q
    """
    settings = of_store(store, data_dir, config_file, live)
    named = _id(key_id)
    try:
        in_store(settings, lambda admin: admin.keyring.revoke(named, actor=ACTOR), tells=True)
        print(f"Key {named} is revoked.")
    except NotFound:
        raise NotFound(f"There is no key {named}. `axon keys list` shows them.") from None
    except DependencyDown as away:
        from axon.bootstrap.administration import revoke_without_store

        quiet(settings)
        if not asyncio.run(revoke_without_store(settings, named)):
            raise
        print(f"Key {named} is revoked at every gateway. {away.message} It is told when it is back.")


async def _make_tenant(admin: "Administration", tenant: str) -> None:
    try:
        await admin.tenancy.tenant(tenant)
    except NotFound:
        try:
            await admin.tenancy.create(tenant, actor=ACTOR)
            print(f"Tenant {tenant} was made: see `axon tenants show {tenant}`.", file=sys.stderr)
            await warn_of_reserves(admin)
        except Conflict as error:
            if error.code != "tenant_exists":  # otherwise another process made it first
                raise


def _life_s(text: str | None) -> float | None:
    from axon.tenants.keyring import MAX_LIFE_S

    life_s = None if text is None else seconds(text, "--expires-in")
    if life_s is not None and not 0 < life_s <= MAX_LIFE_S:
        raise Misconfigured(f"--expires-in {text}: it must be more than 0 and at most a hundred years.")
    return life_s


def _overlap_s(text: str) -> float:
    from axon.tenants.keyring import MAX_OVERLAP_S

    overlap_s = seconds(text, "--overlap")
    if overlap_s > MAX_OVERLAP_S:
        raise Misconfigured(f"--overlap {text}: it must be at most {MAX_OVERLAP_S / 86400:.0f}d.")
    return overlap_s


def _id(text: str) -> str:
    """The id that the text is or has in it; raises ``Misconfigured`` without repeating what may be a secret."""
    parts = parse_key(text)
    if parts is None and (len(text) > _LONGEST_ID or text.startswith("axk_")):
        raise Misconfigured("This is neither a key's id, which is short, nor a whole key. `axon keys list` shows ids.")
    return parts.id if parts else text


def _show_once(key: Key, text: str, *, as_json: bool) -> None:
    """Prints the key; only its text goes to stdout, so that a script can capture it."""
    if as_json:
        print(json.dumps({**key_facts(key, SystemClock().now()), "key": text}))
        return
    print(f"Key {key.id} of tenant {key.tenant}. It is shown this once: only a hash is kept.", file=sys.stderr)
    print(text)
