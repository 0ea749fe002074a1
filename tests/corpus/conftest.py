from collections.abc import Iterator

import pytest

from tests.corpus.asker import Asker


@pytest.fixture(scope="session")
def asker() -> Iterator[Asker]:
    """The default model."""
    asker = Asker()
    yield asker
    asker.close()
