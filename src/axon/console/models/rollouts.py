"""``axon rollouts`` and ``axon rollback``: rollouts by hand, straight in the store. Control's leader does the rest."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axon.console.administration import ACTOR, check_no_key_flag, moment, seconds, show_done, show_json
from axon.console.flags import ConfigFile, DataDir, Json, Live, Store
from axon.console.models.registry import RegistryAccess, Revision, number
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from axon.domain.registry.deployment import Deployment
    from axon.domain.registry.golden import Golden
    from axon.domain.registry.tolerance import Tolerance

app = typer.Typer(help="Roll a version out, look at it and take it back.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The deployment's name.")]
Reason = Annotated[str, typer.Option(help="Why, for whoever looks at the rollout later.")]


@app.command()
def start(
    name: Name,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="The new version: its label or its id.")],
    steps: Annotated[
        str | None, typer.Option(metavar="P,P,…", help="Percentages of new sessions. [default: 1,10,50,100]")
    ] = None,
    bake: Annotated[str, typer.Option(metavar="TIME", help="Time of each step at least; 0s to step by hand.")] = "5m",
    golden: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON list of prompts with the answers that the version must give."),
    ] = None,
    tolerance: Annotated[
        list[str] | None,
        typer.Option("--tolerate", metavar="NAME=VALUE", help="A bound of the comparison, such as slower=1.5."),
    ] = None,
    revision: Revision = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Start a rollout: new sessions go to a new version step by step, while it is not worse than the old one.

    \b
    Examples:
      axon rollouts start qwen3 v2
      axon rollouts start qwen3 v2 --steps 5,25,50,100 --bake 10m --golden golden.json
      axon rollouts start qwen3 v2 --bake 0s --tolerate slower=1.5
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    bake_s, checks, bounds = seconds(bake, "--bake"), _golden(golden), _tolerance(tolerance)
    from axon.domain.registry.rollout import STEPS, Rollout
    from axon.domain.registry.version import version_id
    from axon.registry.rollout_facts import shares_of
    from axon.registry.rules import deployment_of

    shares = STEPS if steps is None else shares_of(_percents(steps))
    model = deployment_of(access.read(), name).model
    new = version if "@" in version else version_id(model, version)
    planned = Rollout(id="", old="", new=new, steps=shares, bake_s=bake_s, began=0.0, golden=checks, tolerance=bounds)
    made = access.change(lambda catalog: catalog.start_rollout(name, planned, revision=revision, actor=ACTOR))
    _show(made, f"The rollout of {new} in {name} waits until it has a worker in every pool.", as_json=as_json)


@app.command()
def status(
    name: Name, store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False
) -> None:
    """Show a deployment's present or last rollout.

    \b
    Example:
      axon rollouts status qwen3
    """
    found = RegistryAccess(store, data_dir, config_file).read()
    from axon.console.tables import print_table
    from axon.registry.rollout_facts import rollout_facts, rollout_of
    from axon.registry.rules import deployment_of

    deployment = deployment_of(found, name)
    if as_json:
        show_json(rollout_facts(deployment))
        return
    rollout = rollout_of(deployment)
    shares = [f"{number(share / 100)} %" for share in rollout.steps]
    rows = [
        ("state", str(rollout.state)),
        ("from", rollout.old),
        ("to", rollout.new),
        ("share of new sessions", f"{number(rollout.share / 100)} %"),
        ("step", f"{rollout.step + 1} of {len(shares)}: {', '.join(shares)}"),
        ("bake time", f"{number(rollout.bake_s)} s" if rollout.bake_s else "by hand"),
        ("began", moment(rollout.began) or "-"),
        ("step began", moment(rollout.stepped) or "-"),
        ("reason", rollout.reason or "-"),
        ("stable version", deployment.stable),
    ]
    print_table(("rollout", rollout.id), rows)
    members = [(each.version, str(each.state), moment(each.since) or "-") for each in deployment.members]
    print_table(("version", "state", "since"), members)


@app.command()
def pause(
    name: Name,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Keep the present share. The comparison goes on, and can still abort.

    \b
    Example:
      axon rollouts pause qwen3
    """
    from axon.domain.registry import steps

    access = RegistryAccess(store, data_dir, config_file, live)
    _step(access, name, lambda old, now: steps.pause(old), "is paused", as_json=as_json)


@app.command()
def resume(
    name: Name,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Go on after a pause; the bake time of the present step begins anew.

    \b
    Example:
      axon rollouts resume qwen3
    """
    from axon.domain.registry import steps

    access = RegistryAccess(store, data_dir, config_file, live)
    _step(access, name, lambda old, now: steps.resume(old, now=now), "goes on", as_json=as_json)


@app.command()
def step(
    name: Name,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Go to the next share now, without waiting for the bake time.

    \b
    Example:
      axon rollouts step qwen3
    """
    from axon.domain.registry import steps

    access = RegistryAccess(store, data_dir, config_file, live)
    _step(access, name, lambda old, now: steps.step(old, now=now), "goes on", as_json=as_json)


@app.command()
def promote(
    name: Name,
    reason: Reason = "promoted by hand",
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Make the new version the stable one now; the old version drains.

    \b
    Example:
      axon rollouts promote qwen3
    """
    check_no_key_flag("--reason", reason)
    from axon.domain.registry import steps

    access = RegistryAccess(store, data_dir, config_file, live)
    _step(access, name, lambda old, now: steps.promote(old, now=now, reason=reason), "is promoted", as_json=as_json)


@app.command()
def abort(
    name: Name,
    reason: Reason = "aborted by hand",
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Take a broken version back: its sessions are moved to the stable version. `axon rollback` leaves them on it.

    \b
    Example:
      axon rollouts abort qwen3 --reason "it answers in capitals"
    """
    check_no_key_flag("--reason", reason)
    from axon.domain.registry import steps

    def act(old: "Deployment", now: float) -> "Deployment":
        return steps.abort(old, now=now, reason=reason, moves=True)

    _step(RegistryAccess(store, data_dir, config_file, live), name, act, "is aborted", as_json=as_json)


def rollback(
    name: Name,
    reason: Reason = "rolled back by hand",
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Begin new sessions on the old version again, within a second; sessions of the new version stay on it.

    A rollout that was promoted is rolled back as well, as long as its old version still runs.

    \b
    Example:
      axon rollback qwen3
    """
    check_no_key_flag("--reason", reason)
    from axon.domain.registry import steps

    access = RegistryAccess(store, data_dir, config_file, live)
    _step(access, name, lambda old, now: steps.rollback(old, now=now, reason=reason), "is rolled back", as_json=as_json)


def _step(
    access: RegistryAccess, name: str, act: Callable[["Deployment", float], "Deployment"], what: str, *, as_json: bool
) -> None:
    from axon.runtime.clock import SystemClock

    now = SystemClock().now()
    made = access.change(lambda catalog: catalog.change_deployment(name, lambda old: act(old, now), actor=ACTOR))
    rollout = made.rollout
    assert rollout is not None
    share = f"{number(rollout.share / 100)} % of new sessions begin on it" if rollout.share else "no rollout runs now"
    sentence = f"The rollout of {rollout.new} in {name} {what}: {share}, the stable version is {made.stable}."
    _show(made, sentence, as_json=as_json)


def _show(deployment: "Deployment", sentence: str, *, as_json: bool) -> None:
    from axon.registry.rollout_facts import rollout_facts

    show_done(sentence, rollout_facts(deployment), as_json=as_json)


def _percents(text: str) -> list[float]:
    try:
        return [float(part.strip().removesuffix("%")) for part in text.split(",")]
    except ValueError:
        raise Misconfigured(f"--steps {text}: write percentages, such as 1,10,50,100.") from None


def _golden(path: Path | None) -> "tuple[Golden, ...]":
    """The golden prompts of a file: a JSON list of objects with ``prompt``, ``expected``, ``exactly``."""
    if path is None:
        return ()
    import msgspec

    from axon.domain.registry.golden import Golden

    try:
        made = tuple(Golden(**each) for each in json.loads(path.read_text("utf-8")))
        return msgspec.convert(msgspec.to_builtins(made), tuple[Golden, ...])  # checks the types of the fields
    except (ValueError, TypeError, RecursionError, msgspec.MsgspecError) as error:
        raise Misconfigured(
            f'--golden {path}: it must be a JSON list such as [{{"prompt": "2+2=", "expected": "4"}}] ({error}).'
        ) from None


def _tolerance(assignments: list[str] | None) -> "Tolerance":
    from dataclasses import fields

    from axon.domain.registry.tolerance import Tolerance

    known = {each.name: each.type for each in fields(Tolerance)}
    values: dict[str, Any] = {}
    for each in assignments or ():
        name, equals, text = each.partition("=")
        if not equals or name not in known:
            raise Misconfigured(f"--tolerate {each}: write NAME=VALUE; names are {', '.join(known)}.")
        try:
            values[name] = int(text) if name == "min_samples" else float(text)
        except ValueError:
            raise Misconfigured(f"--tolerate {each}: {text!r} is no number.") from None
    return Tolerance(**values)
