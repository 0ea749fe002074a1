"""Every measured figure stands on the page that it names, with its number."""

import re
from pathlib import Path

import pytest

from axon.domain.sizing import figure as figures
from axon.domain.sizing.figure import Certainty, Figure

ROOT = Path(__file__).resolve().parents[3]
_PREFIXES = {"": 1.0, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "GB": 1e9, "TB/s": 1e12, "MB": 1e6, "kB": 1e3}
_IN_MILLISECONDS = {"time to the first token of a prompt of 128 words, one stream, SmolLM2-135M on two cores"}
_IN_MEGABYTES = {"memory of an engine with SmolLM2-135M in int8"}
"""Their columns' heads have the unit."""

MEASURED = [figure for figure in figures.ALL if figure.page]


@pytest.mark.parametrize("figure", MEASURED, ids=lambda figure: figure.name)
def test_a_measured_figure_is_found_on_its_page(figure: Figure) -> None:
    page = " ".join((ROOT / figure.page).read_text().split())
    assert " ".join(figure.words.split()) in page, f"{figure.page} does not say {figure.words!r} any more"
    assert any(_is(figure.value, each) for each in _numbers(figure)), f"{figure.words!r} does not say {figure.value}"


def _numbers(figure: Figure) -> list[float]:
    """The numbers of its words, in the units that follow them."""
    scale = 1e-3 if figure.name in _IN_MILLISECONDS else 1e6 if figure.name in _IN_MEGABYTES else 1.0
    found = re.findall(r"(\d[\d,]*(?:\.\d+)?)\s?(µs|ms|GB|TB/s|MB|kB|s\b)?", figure.words)
    return [float(number.replace(",", "")) * (_PREFIXES[unit] if unit else scale) for number, unit in found]


def _is(value: float, said: float) -> bool:
    return abs(value - said) <= 1e-9 * abs(value)


def test_a_figure_without_a_page_is_an_assumption_and_says_so() -> None:
    assumed = [figure for figure in figures.ALL if not figure.page]
    assert assumed
    assert all(figure.certainty is Certainty.ASSUMED and not figure.words for figure in assumed)
    assert all(figure.certainty is Certainty.MEASURED and figure.words for figure in MEASURED)


def test_every_figure_of_the_module_is_in_its_table() -> None:
    own = {id(value) for value in vars(figures).values() if isinstance(value, Figure)}
    assert own <= {id(figure) for figure in figures.ALL}
    assert len({figure.name for figure in figures.ALL}) == len(figures.ALL)
