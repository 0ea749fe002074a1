"""``axon prices``: what a model's tokens cost, straight in the store."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from axon.console.administration import ACTOR, moment
from axon.console.flags import ConfigFile, DataDir, Json, Live, Store
from axon.console.models.registry import RegistryAccess, number, show_record, show_records
from axon.errors import Misconfigured
from axon.runtime.clock import SystemClock

app = typer.Typer(help="List and add the prices of tokens.", no_args_is_help=True)


@app.command("list")
def index(
    model: Annotated[str | None, typer.Option(help="Only this model's.")] = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """List the prices, the latest first. They are for a million tokens.

    \b
    Examples:
      axon prices list
      axon prices list --model qwen3 --json
    """
    found = RegistryAccess(store, data_dir, config_file).read()
    show_records(
        [price for price in reversed(found.prices) if model in (None, price.model)],
        {
            "for": lambda price: price.version or price.model,
            "since": lambda price: moment(price.since) or "",
            "prompt": lambda price: number(price.prompt),
            "cached": lambda price: number(price.cached),
            "output": lambda price: number(price.output),
            "inputs": lambda price: number(price.inputs),
            "currency": lambda price: price.currency,
        },
        as_json=as_json,
        nothing="The registry has no prices.",
    )


@app.command()
def add(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model.")],
    version: Annotated[str, typer.Option(help="Only this version's, by its label.")] = "",
    prompt: Annotated[float, typer.Option(metavar="PRICE", help="Of prompt tokens that are computed.")] = 0.0,
    cached: Annotated[float, typer.Option(metavar="PRICE", help="Of prompt tokens found in the cache.")] = 0.0,
    output: Annotated[float, typer.Option(metavar="PRICE", help="Of tokens of answers.")] = 0.0,
    inputs: Annotated[float, typer.Option(metavar="PRICE", help="Of inputs of embeddings.")] = 0.0,
    currency: Annotated[str, typer.Option(help="Three capital letters.")] = "USD",
    since: Annotated[str | None, typer.Option(metavar="TIME", help="When it begins to hold. [default: now]")] = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Add a price for a million tokens of each kind. A price is never changed: a later one follows it.

    \b
    Examples:
      axon prices add qwen3 --prompt 0.15 --cached 0.03 --output 0.60
      axon prices add qwen3 --version v2 --prompt 0.20 --output 0.80 --since 2027-01-01
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    from axon.domain.registry.price import Price
    from axon.domain.registry.version import version_id

    price = Price(
        id="",
        model=model,
        version=version_id(model, version) if version and "@" not in version else version,
        prompt=prompt,
        cached=cached,
        output=output,
        inputs=inputs,
        currency=currency,
        since=SystemClock().now() if since is None else _time(since),
    )
    made = access.change(lambda catalog: catalog.add_price(price, actor=ACTOR))
    sentence = f"{made.version or made.model} has a price from {moment(made.since)} on."
    show_record(made, sentence, as_json=as_json)


def _time(text: str) -> float:
    """The Unix time of a day or a moment in UTC."""
    try:
        named = datetime.fromisoformat(text)
    except ValueError:
        raise Misconfigured(f"--since {text}: write a day such as 2027-01-01, or 2027-01-01T12:00:00Z.") from None
    return (named if named.tzinfo else named.replace(tzinfo=UTC)).timestamp()
