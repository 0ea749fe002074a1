"""A URL is shown without its password, however it is written."""

import pytest

from axon.runtime.service_url import HIDDEN, cannot_be_on, scheme_of, shown

SECRET = "s3cr3t"
WRONG = [
    f"postgresql://u:a/{SECRET}@h/a",
    f"postgresql://u:a@{SECRET}@h/a",
    f"host=h user=u password={SECRET}",
    SECRET,
    f"u:{SECRET}@h",
    f"redis:{SECRET}",
    f"redis:{SECRET}://h",
    f"{SECRET}{SECRET}{SECRET}{SECRET}://h",
    f"redis://h,redis://u:{SECRET}@h2",
    f" postgresql://u:{SECRET}@h/a",
    f"postgresql://u:x@h/a\npostgresql://u:{SECRET}@h/b",
]


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_whole_url_is_hidden(url: str) -> None:
    assert shown(url) == HIDDEN


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql://u:s3cr3t@h/a", "postgresql://u:(hidden)@h/a"),
        ("redis://:s3cr3t@h", "redis://:(hidden)@h"),
        ("amqp://u:a#s3cr3t@h", "amqp://u:(hidden)@h"),
        ("postgresql://u:a?s3cr3t@h/a", "postgresql://u:(hidden)@h/a"),
        ("postgresql://u:x\ns3cr3t@h/a", "postgresql://u:(hidden)@h/a"),
        ("postgresql://u@h/a?password=s3cr3t&port=5", "postgresql://u@h/a?password=(hidden)&port=5"),
        ("postgresql://h/a?p%61ssword=s3cr3t", "postgresql://h/a?p%61ssword=(hidden)"),
        ("postgresql://h/a?sslPassword=s3cr3t", "postgresql://h/a?sslPassword=(hidden)"),
        ("rediss+cluster://h:7000/0", "rediss+cluster://h:7000/0"),
        ("memory://", "memory://"),
        ("sqlite:////home/me@example.com/a@b.db", "sqlite:////home/me@example.com/a@b.db"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, text: str) -> None:
    assert shown(url) == text


def test_an_error_quotes_a_scheme_and_nothing_else() -> None:
    assert cannot_be_on("The store", "mysql://u:s3cr3t@h/a", "sqlite:///").startswith("The store cannot be on 'mysql':")
    for url in (*WRONG, f"http://{SECRET}"):
        assert SECRET not in cannot_be_on("The store", url, "sqlite:///")
    assert scheme_of("POSTGRESQL://h") == scheme_of("a" * 21 + "://h") == scheme_of("host=h") == ""
