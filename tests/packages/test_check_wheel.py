"""The check of a built wheel notices what must not be published."""

import importlib.util
from typing import Any

import pytest

from axon.engine.native.build import file_name
from tests.journeys.server import REPOSITORY


@pytest.fixture(scope="module")
def check_wheel() -> Any:
    spec = importlib.util.spec_from_file_location("check_wheel", REPOSITORY / "scripts" / "check_wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WANTED = {"axon/cli.py", "axon/py.typed"}
INFO = "axon_serving-1.0.dist-info/METADATA"
LIBRARY = f"axon/engine/native/{file_name('x86_64')}"
NAME = "axon_serving-1.0-py3-none-manylinux_2_28_x86_64.whl"
WHOLE = [*WANTED, INFO, LIBRARY]


def test_a_whole_wheel_has_no_faults(check_wheel: Any) -> None:
    assert check_wheel.faults("x86_64", NAME, WHOLE, WANTED) == []
    assert check_wheel.faults("any", "axon_serving-1.0-py3-none-any.whl", [*WANTED, INFO], WANTED) == []


@pytest.mark.parametrize(
    ("name", "files", "told"),
    [
        (NAME.replace("manylinux_2_28", "linux"), WHOLE, "manylinux_2_28_x86_64"),
        (NAME, [*WANTED, INFO], "it carries []"),
        (NAME, [*WANTED, INFO, f"axon/engine/native/{file_name('aarch64')}"], "kernel-aarch64"),
        (NAME, [*WHOLE, "axon/engine/native/kernel-x86_64-old.so"], "kernel-x86_64-old.so"),
        (NAME, ["axon/cli.py", INFO, LIBRARY], "axon/py.typed is missing"),
        (NAME, [*WHOLE, "tests/conftest.py"], "tests/conftest.py is no part"),
    ],
)
def test_what_is_wrong_is_said(check_wheel: Any, name: str, files: list[str], told: str) -> None:
    (fault,) = check_wheel.faults("x86_64", name, files, WANTED)
    assert told in fault


def test_the_files_that_a_wheel_must_have_are_the_modules_and_the_named_data(check_wheel: Any) -> None:
    expected = check_wheel.expected()
    assert {"axon/cli.py", "axon/py.typed", "axon/engine/native/kernel.cpp"} <= expected
    assert any(name.endswith(".lua") for name in expected)
    assert not any(name.endswith((".so", ".pyc")) for name in expected)
