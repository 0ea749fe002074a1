"""Checks everything in ``deploy/``, each file by its real tool: one line for each check, with its seconds.

python -m tests.deploy                      all checks; what is skipped is said with its reason
python -m tests.deploy chart edge           those whose names have one of these words

A check is a test file here, or one of those for the edge and for rules and routes of alerts, ``test_NAME.py``, whose
first sentence is its description. ``make test`` runs the same tests, but for the slow ones of Terraform and checkov,
which run here and in ``make test-long``, and has Helm lint one set of values and refuse one. Tests with the mark
``long`` are left to ``make test-long``, and the whole rehearsal to ``make rehearsal``.
"""

import ast
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ELSEWHERE = ("edge/test_*.py", "monitoring/test_rules.py", "monitoring/test_routes.py")
"""Checks of things in ``deploy/`` whose tests are at home elsewhere."""


@dataclass
class Check:
    """What became of one file's tests."""

    path: Path
    says: str
    """The file's first sentence."""
    passed: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """How often, by the reason."""
    seconds: float = 0.0

    @property
    def line(self) -> str:
        verdict = "FAILED" if self.failed else "ok" if self.passed else "skipped"
        counted = f"{self.passed + self.failed} tests" + (f", {self.failed} failed" if self.failed else "")
        return f"{verdict:<8}{self.seconds:>7.1f} s  {name_of(self.path):<14} {self.says} ({counted})"


class Reporter:
    """A plugin of pytest that adds up by file: two files may have one name, in two folders."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self._checks = {key_of(each.path): each for each in checks}
        self._last: Check | None = None
        self.problems: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        check = self._checks[key_of(Path(report.nodeid.partition("::")[0]))]
        if check is not self._last:
            self.tell()
            self._last = check
        check.seconds += report.duration
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            check.skipped[reason] = check.skipped.get(reason, 0) + 1
        elif report.failed:
            check.failed += 1
            self.problems.append(f"{report.nodeid}\n{report.longreprtext}")
        elif report.when == "call":
            check.passed += 1

    def tell(self) -> None:
        """Prints what became of the file whose tests ran last."""
        if self._last is not None:
            print(self._last.line, flush=True)
            for reason, count in self._last.skipped.items():
                print(f"        skipped {count}: {reason.removeprefix('Skipped: ')}", flush=True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(f"{report.nodeid}\n{report.longreprtext}")


def key_of(path: Path) -> str:
    """The path below ``tests/``; one without a root is below the repository's, as pytest has it."""
    tests = FOLDER.parent
    return (tests.parent / path).relative_to(tests).as_posix()


def name_of(path: Path) -> str:
    """What is shown of a file, and what words choose it by."""
    return path.stem.removeprefix("test_")


def found(words: Sequence[str] = ()) -> list[Path]:
    """The files of the checks whose names have one of the words; all without a word."""
    files = sorted(FOLDER.glob("test_*.py")) + [path for each in ELSEWHERE for path in sorted(FOLDER.parent.glob(each))]
    return [each for each in files if not words or any(word in name_of(each) for word in words)]


def first_sentence(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def main(words: Sequence[str]) -> int:
    files = found(words)
    checks = [Check(each, first_sentence(each)) for each in files]
    reporter = Reporter(checks)
    began = time.monotonic()
    quiet = ["-p", "no:terminal", "-p", "no:cacheprovider", "-o", "addopts=--strict-markers --strict-config"]
    code = pytest.main([*quiet, *map(str, files)], plugins=[reporter])
    reporter.tell()
    for problem in reporter.problems:
        print(f"\n{problem}", file=sys.stderr)
    failed = sum(each.failed for each in checks)
    skipped = sum(sum(each.skipped.values()) for each in checks)
    passed = sum(each.passed for each in checks)
    print(f"{passed} passed, {failed} failed, {skipped} skipped, in {time.monotonic() - began:.0f} s")
    return int(code)


if __name__ == "__main__":
    os.environ.setdefault("TEST_SEED", "")
    sys.exit(main(sys.argv[1:]))
