"""Both samplers, by the same tests; without a compiler only the one in numpy."""

import pytest

from tests.engine.builders import require_native
from tests.engine.sample.builders import SAMPLERS, Sample


@pytest.fixture(scope="session", params=SAMPLERS)
def sample(request: pytest.FixtureRequest) -> Sample:
    if request.param == "native":
        require_native()
    return SAMPLERS[request.param]
