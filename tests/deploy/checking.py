"""Whether a run is ``make check-deploy``, and how much of dear checks a run does. Knows no check."""

import os
import sys
from collections.abc import Iterable

import pytest


def is_check_deploy() -> bool:
    """Whether this is ``make check-deploy``, which has the time for all of it."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return os.environ.get("CHECK_DEPLOY") == "1" or (main is not None and main.name == "tests.deploy.__main__")


def each_of(parameter: str, cases: Iterable[str], *, corpus: str) -> pytest.MarkDecorator:
    """Cases of which each takes an emulated tool seconds: ``make check-deploy`` has all of them, and for the other runs
    they are a corpus, which ``make test`` has a tenth of."""
    marks = [] if is_check_deploy() else [pytest.mark.long(corpus)]
    return pytest.mark.parametrize(parameter, [pytest.param(each, marks=marks) for each in cases])
