"""Checks the Terraform modules and environments whole: ``python -m tests.deploy.terraform``."""

import os
import sys
from pathlib import Path

import pytest


def main() -> int:
    os.environ["CHECK_DEPLOY"] = "1"
    files = sorted(Path(__file__).resolve().parents[1].glob("test_terraform*.py"))
    return int(pytest.main(["-p", "no:cacheprovider", "-ra", *map(str, files)]))


if __name__ == "__main__":
    sys.exit(main())
