"""The engine on a GPU keeps the promises it keeps on the CPU. Skipped only where there is no GPU."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.engine.cuda.checks import CHECKS, make_folders
from tests.engine.cuda.draft_checks import DRAFT_CHECKS
from tests.engine.cuda.driving import Folders
from tests.engine.cuda.wider_checks import WIDER_CHECKS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
    pytest.mark.timeout(900),  # kernels are compiled on their first launch
]


@pytest.fixture(scope="module")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return make_folders(Path(tmp_path_factory.mktemp("models")))


@pytest.mark.parametrize("check", [*CHECKS, *WIDER_CHECKS, *DRAFT_CHECKS], ids=lambda check: check.__name__)
def test_promise(check: Callable[[Folders], None], make_folder: Folders) -> None:
    check(make_folder)
