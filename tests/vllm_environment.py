"""The environment with the real vLLM, which ``make test-vllm`` makes, and the tests that need it."""

import os

import pytest

VARIABLE = "TEST_VLLM_PYTHON"
"""Names its interpreter; without it, tests of the real vLLM are skipped."""


def vllm_python() -> str:
    """Its interpreter; skips the test where there is none."""
    if not (python := os.environ.get(VARIABLE, "")):
        pytest.skip("needs vLLM itself: make test-vllm")
    return python
