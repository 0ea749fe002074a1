"""``axon size``: how many replicas, gateways and services a load needs, and which measured figure says so."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axon.console.flags import Json
from axon.domain.sizing.device import Device

if TYPE_CHECKING:
    from axon.domain.sizing.figure import Figure
    from axon.domain.sizing.plan import Part


def size(
    model: Annotated[str, typer.Option(help="A folder with a config.json, or a known shape such as llama-3-8b.")],
    tokens_per_s: Annotated[float, typer.Option("--tokens-per-s", help="Answer tokens of all streams together.")],
    streams: Annotated[int, typer.Option(help="Answers that are under way at once.")],
    device: Annotated[Device, typer.Option(help="What engines compute on.")] = Device.H200,
    prompt_tokens: Annotated[
        float, typer.Option(help="Prompt tokens of a turn, those found in the cache left out.")
    ] = 512,
    answer_tokens: Annotated[float, typer.Option(help="Answer tokens of a turn.")] = 256,
    context: Annotated[
        int | None, typer.Option(help="Tokens that a stream keeps in KV blocks. [default: prompt and answer]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute what a load needs, from figures that were measured.

    \b
    Examples:
      axon size --model llama-3-8b --tokens-per-s 20000 --streams 1000
      axon size --model ./models/mine --tokens-per-s 300 --streams 20 --device cpu --json
    """
    from axon.bootstrap.models.shape import shape_of
    from axon.console.administration import show_json
    from axon.domain.sizing.plan import Load, plan

    load = Load(
        tokens_per_s=tokens_per_s,
        streams=streams,
        prompt_tokens=prompt_tokens,
        answer_tokens=answer_tokens,
        context=context,
        device=device,
    )
    found = plan(shape_of(model), load)
    if as_json:
        show_json({"parts": [_facts(part) for part in found.parts], "unknown": list(found.unknown)})
        return
    from axon.console.tables import print_table

    rows = [
        (part.name, f"{number_text(part.number)} {part.unit}", str(part.certainty), part.why) for part in found.parts
    ]
    print_table(("part", "needs", "certainty", "why"), rows)
    print("\nFrom these figures:")
    for figure in dict.fromkeys(figure for part in found.parts for figure in part.sources):
        print(f"  {_told(figure)}")
    print("\nNot answered: " + "; ".join(found.unknown) + ".")


def number_text(number: float) -> str:
    """A count as a whole number, an amount with three digits."""
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.3g}"


def _told(figure: "Figure") -> str:
    where = f"measured, {figure.page}" if figure.page else "assumed"
    return f"{figure.name}: {figure.value:,.6g} {figure.unit}".rstrip() + f" ({where})"


def _facts(part: "Part") -> dict[str, Any]:
    return {
        "name": part.name,
        "number": part.number,
        "unit": part.unit,
        "certainty": str(part.certainty),
        "why": part.why,
        "figures": [
            {
                "name": figure.name,
                "value": figure.value,
                "unit": figure.unit,
                "certainty": str(figure.certainty),
                "page": figure.page,
            }
            for figure in part.sources
        ],
    }
