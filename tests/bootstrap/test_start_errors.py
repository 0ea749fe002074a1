"""Messages of a failed start, made from the drivers' own errors."""

import errno
import os
import re
import socket
import sqlite3
import ssl
from pathlib import Path

import psycopg
import pytest
import redis.exceptions
from aiormq.exceptions import (
    AMQPConnectionError,
    ChannelAccessRefused,
    InvalidFrameError,
    ProbableAuthenticationError,
)
from sqlalchemy.exc import OperationalError

from axon import bootstrap
from axon.adapters import amqp, amqp_start_errors, tls_errors
from axon.adapters.live.redis import driver_errors as redis_driver_errors
from axon.adapters.live.redis import start_errors as redis_start_errors
from axon.adapters.live.redis.start_errors import LIVE as REDIS
from axon.adapters.start_errors import MAX_CHARS, Service, address, start_error
from axon.adapters.store import driver_errors
from axon.adapters.store import start_errors as store_start_errors
from axon.adapters.store.start_errors import STORE as DATABASE
from axon.errors import DependencyDown

QUEUE = "amqp://axon:s3cret@broker/x"
LIVE = "redis://axon:s3cret@cache:7000/77"
STORE = "postgresql://axon:s3cret@db/axon"
FILE = "sqlite:////data/axon.db"
BROKER = amqp_start_errors.service_of(QUEUE)


def of_queue(error: BaseException, url: str = QUEUE) -> str:
    failure = amqp.down(error)
    failure.__cause__ = error
    return start_error(url, failure, amqp_start_errors.service_of(url), amqp_start_errors.recognise)


def live_error(url: str, failure: DependencyDown) -> str:
    return start_error(url, failure, REDIS, redis_start_errors.recognise)


def of_live(error: Exception, url: str = LIVE) -> str:
    return live_error(url, redis_driver_errors.translate(error))


def of_store(error: Exception, url: str = STORE) -> str:
    return start_error(url, driver_errors.translate(error), DATABASE, store_start_errors.recognise)


def wrapped(error: Exception) -> OperationalError:
    return OperationalError(None, None, error)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def refused() -> ConnectionRefusedError:
    return ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)")


def unknown_host() -> socket.gaierror:
    return socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def libpq(text: str) -> OperationalError:
    head = 'connection failed: connection to server at "127.0.0.1", port 5432 failed: '
    return wrapped(psycopg.OperationalError(head + text))


def test_a_queue_that_cannot_be_opened_says_why() -> None:
    at = "The queue at broker:5672"
    assert of_queue(AMQPConnectionError(*refused().args)) == f"{at} does not answer: connection refused."
    assert of_queue(ProbableAuthenticationError("ACCESS_REFUSED")) == (
        f"{at} refuses the user 'axon': wrong user or password."
    )
    closed = InvalidFrameError("Expected one of ['Connection.OpenOk'], got <Connection.Close object at 0xffff>")
    assert of_queue(closed) == f"{at} has no vhost 'x', or none that the user 'axon' may use."
    assert of_queue(caused(AMQPConnectionError(-2, "Name"), unknown_host())) == (
        f"{at} does not answer: there is no such host."
    )
    assert of_queue(TimeoutError()) == (f"{at} does not answer in time: nothing there speaks AMQP, or it is too busy.")
    assert "closed the connection. Does it speak AMQP?" in of_queue(caused(AMQPConnectionError("cut"), EOFError()))
    tls = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    tls.reason = "WRONG_VERSION_NUMBER"
    assert of_queue(caused(AMQPConnectionError(*tls.args), tls), "amqps://broker") == (
        "The queue at broker:5671 does not answer: TLS failed (wrong version number)."
    )


def test_a_live_service_that_cannot_be_opened_says_why() -> None:
    at = "The live service at cache:7000"
    assert of_live(caused(redis.exceptions.ConnectionError("Error 111"), refused())) == (
        f"{at} does not answer: connection refused."
    )
    assert of_live(redis.exceptions.ResponseError("DB index is out of range")) == f"{at} has no database 77."
    denied = redis.exceptions.AuthenticationError("invalid username-password pair or user is disabled.")
    assert of_live(denied) == f"{at} refuses the user 'axon': wrong user or password."
    assert of_live(denied, "redis://cache:7000") == f"{at} wants a password."
    assert of_live(redis.exceptions.InvalidResponse("Protocol error")) == f"{at} does not speak Redis's protocol."
    assert of_live(redis.exceptions.OutOfMemoryError()) == f"{at} has no room left."


def test_a_cluster_that_cannot_be_opened_says_why_and_quotes_nothing() -> None:
    url = "redis+cluster://cache"
    alone = caused(redis.exceptions.RedisClusterException("no"), redis.exceptions.ResponseError("SET secret words"))
    failure = redis_driver_errors.translate(alone)
    failure.__context__ = alone  # as when it is raised
    assert live_error(url, failure) == "The live service at cache:6379 does not answer (RedisClusterException)."
    alone.__cause__ = redis.exceptions.ResponseError("This instance has cluster support disabled")
    assert "is not part of a cluster: use redis://" in live_error(url, failure)


def test_a_store_that_cannot_be_opened_says_why() -> None:
    at = "The store at db:5432"
    assert of_store(libpq('FATAL:  role "nodb" does not exist')) == f"{at} has no role 'nodb'."
    assert of_store(libpq('FATAL:  database "x" does not exist')) == f"{at} has no database 'x'."
    assert of_store(libpq('FATAL:  password authentication failed for user "axon"')) == (
        f"{at} refuses the user 'axon': wrong user or password."
    )
    assert of_store(libpq("Connection refused\n\tIs the server running?")) == (
        f"{at} does not answer: connection refused."
    )
    assert of_store(libpq("server does not support SSL, but SSL was required")) == (
        f"{at} does not speak TLS: turn it on there, or write sslmode=disable in its URL."
    )
    assert "nothing there speaks PostgreSQL's protocol" in of_store(TimeoutError())
    assert of_store(OSError(errno.ENOSPC, "full")) == f"{at} has no room left."


def test_a_store_in_a_file_names_the_file_and_the_systems_reason() -> None:
    read_only = OSError(errno.EROFS, os.strerror(errno.EROFS), "/data/axon.db")
    assert of_store(read_only, FILE) == "The store at /data/axon.db cannot be used: read-only file system."
    written = sqlite3.OperationalError("attempt to write a readonly database")
    assert of_store(wrapped(written), FILE) == "The store at /data/axon.db cannot be used: read-only file."


def test_what_nobody_foresaw_is_told_in_the_drivers_words_bounded_and_without_a_password() -> None:
    said = of_queue(ChannelAccessRefused("access of s3cret refused\nand more"))
    assert said == "The queue at broker:5672 does not answer: ChannelAccessRefused: access of *** refused."
    assert len(of_queue(ChannelAccessRefused("long " * 1000))) < MAX_CHARS + 60
    encoded = of_queue(ChannelAccessRefused("p/w and p%2Fw"), "amqp://axon:p%2Fw@broker")
    assert encoded.endswith(": *** and ***.")
    asked = of_live(redis.exceptions.ResponseError("not s3cret"), "redis://cache?password=s3cret")
    assert asked.endswith("ResponseError: not ***.")


@pytest.mark.parametrize("url", ["amqp://axon:12/34@broker/x", "amqp://axon:12#34@broker", "amqp://axon:12?34@broker"])
def test_of_a_password_that_is_taken_for_a_port_nothing_is_said(url: str) -> None:
    said = of_queue(refused(), url)
    assert said.startswith("The queue does not answer. In its URL's user and password, write / as %2F")
    assert "12" not in said.replace("%2", "")


def test_a_url_that_cannot_be_split_adds_nothing() -> None:
    assert of_store(libpq("no"), "postgresql://axon:s3\u2100cret@db/x") == "The store does not answer."


@pytest.mark.parametrize(
    ("url", "service", "expected"),
    [
        ("amqp://axon:pw@broker:1/x", BROKER, "broker:1"),
        ("amqps://broker", amqp_start_errors.service_of("amqps://broker"), "broker:5671"),
        ("redis://[::1]/0", REDIS, "[::1]:6379"),
        ("redis://", REDIS, "localhost:6379"),
        ("postgresql://axon@a,b:2/x", DATABASE, "a:5432,b:2"),
        ("postgresql:///x?host=db&port=7", DATABASE, "db:7"),
        ("postgresql:///x?host=/run/pg", DATABASE, "/run/pg"),
        ("postgresql:///x", DATABASE, "its local socket"),
        ("sqlite:///axon.db", DATABASE, "axon.db"),
    ],
)
def test_an_address_is_a_host_and_a_port_or_a_file(url: str, service: Service, expected: str) -> None:
    assert address(url, service) == expected


def test_bootstrap_names_no_driver() -> None:
    for path in Path(bootstrap.__file__).parent.glob("*.py"):
        assert not re.search(r"\b(aiormq|psycopg|sqlalchemy|sqlite3|redis\.exceptions)\b", path.read_text()), path


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("SSL error: certificate verify failed", tls_errors.UNSAID),
        ("SSL error: certificate verify failed: unable to get local issuer certificate", tls_errors.UNKNOWN_CA),
        ("SSL error: certificate verify failed: self-signed certificate in chain", tls_errors.UNKNOWN_CA),
        ("SSL error: certificate verify failed: certificate has expired", tls_errors.EXPIRED),
        ("SSL error: certificate verify failed: certificate revoked", "that is not taken: certificate revoked."),
        ('server certificate for "a" does not match host name "db"', tls_errors.OTHER_NAME),
    ],
)
def test_postgresql_is_believed_what_it_says_of_a_certificate_and_no_more(said: str, expected: str) -> None:
    message = of_store(psycopg.OperationalError(f'connection to server at "db", port 5432 failed: {said}\n'))
    assert message.startswith("The store at db:5432 shows a certificate")
    assert message.endswith(expected)
