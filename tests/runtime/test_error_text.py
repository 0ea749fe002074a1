"""Another's error is told in one short line, without what was asked."""

from sqlalchemy.exc import OperationalError

from axon.runtime.error_text import first_line


def test_only_the_first_line_is_told_without_its_full_stop() -> None:
    assert first_line(ValueError("No route.\nDebug: secret")) == "No route"
    assert first_line(ValueError("")) == ""
    assert len(first_line(ValueError("x" * 10_000))) == 300


def test_of_a_failed_statement_the_driver_is_quoted_and_not_the_statement() -> None:
    error = OperationalError("SELECT secret", {}, ValueError("disk I/O error\nmore"))
    assert first_line(error) == "disk I/O error"
