"""Users of the real services that come and go, as where passwords are rotated. Knows no Axon."""

import secrets
from collections.abc import Mapping
from typing import Protocol

from tests.services.postgres import PostgresServer
from tests.services.process import wait_for
from tests.services.rabbitmq import RabbitServer
from tests.services.redis import RedisServer


class Users(Protocol):
    """Of one service, by TLS."""

    def make(self, name: str) -> None:
        """A user that may do what Axon needs, with a password of its own."""

    def url(self, name: str) -> str: ...

    def remove(self, name: str) -> None:
        """The user, and every connection that it has."""


class _Passwords:
    def __init__(self, prefix: str) -> None:
        self._prefix, self._known = prefix, dict[str, str]()

    def user(self, name: str) -> str:
        return f"{self._prefix}_{name}"

    def new(self, name: str) -> str:
        self._known[name] = secrets.token_hex(8)
        return self._known[name]

    def credentials(self, name: str) -> str:
        return f"{self.user(name)}:{self._known[name]}"


class RabbitUsers:
    """A broker closes the connections of a user that it removes."""

    def __init__(self, server: RabbitServer, prefix: str) -> None:
        self._server, self._words = server, _Passwords(prefix)

    def make(self, name: str) -> None:
        user, password = self._words.user(name), self._words.new(name)
        made = f'rabbit_auth_backend_internal:add_user(<<"{user}">>, <<"{password}">>, <<"test">>)'
        rights = ", ".join(['<<".*">>'] * 3)
        allowed = f'rabbit_auth_backend_internal:set_permissions(<<"{user}">>, <<"/">>, {rights}, <<"test">>)'
        self._server.evaluate(f"{made}, {allowed}.")

    def url(self, name: str) -> str:
        return f"amqps://{self._words.credentials(name)}@localhost:{self._server.tls_port}/"

    def remove(self, name: str) -> None:
        user = self._words.user(name)
        self._server.evaluate(f'rabbit_auth_backend_internal:delete_user(<<"{user}">>, <<"test">>).')
        left = f'length(rabbit_connection_tracking:list_of_user(<<"{user}">>)).'
        wait_for(lambda: "0" in self._server.evaluate(left), "the removed user has no connection")


class RedisUsers:
    """A server closes the connections of a user that it removes."""

    def __init__(self, server: RedisServer, prefix: str) -> None:
        self._server, self._words = server, _Passwords(prefix)

    def make(self, name: str) -> None:
        with self._server.admin() as admin:
            rights = ("on", f">{self._words.new(name)}", "~*", "&*", "+@all")
            admin.execute_command("ACL SETUSER", self._words.user(name), *rights)

    def url(self, name: str) -> str:
        return self._server.tls_url.replace("://", f"://{self._words.credentials(name)}@")

    def remove(self, name: str) -> None:
        with self._server.admin() as admin:
            admin.execute_command("ACL DELUSER", self._words.user(name))


class PostgresUsers:
    """Roles that are members of the owner's, for one database."""

    def __init__(self, server: PostgresServer, database_url: str, prefix: str) -> None:
        self._server, self._database, self._words = server, database_url.rpartition("/")[2], _Passwords(prefix)

    def make(self, name: str) -> None:
        user, password = self._words.user(name), self._words.new(name)
        self._server.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{password}' IN ROLE axon")

    def url(self, name: str) -> str:
        return f"postgresql://{self._words.credentials(name)}@localhost:{self._server.port}/{self._database}"

    def remove(self, name: str) -> None:
        user = self._words.user(name)
        self._server.execute(f"ALTER ROLE {user} NOLOGIN")
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'"
        wait_for(lambda: not self._server.execute(end), "the removed user has no connection")
        self._server.execute(f"DROP ROLE {user}")


def rotating(queue: RabbitServer, live: RedisServer, store: PostgresServer, database_url: str) -> Mapping[str, Users]:
    """Users of the three services, with names that nobody else has."""
    prefix = f"test_{secrets.token_hex(4)}"
    return {
        "queue": RabbitUsers(queue, prefix),
        "live": RedisUsers(live, prefix),
        "store": PostgresUsers(store, database_url, prefix),
    }
