"""Pins of turns: which version each session is on is read from its turns."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # With a default in the database: a process of the release before writes neither column.
    op.add_column("turns", sa.Column("pin", sa.Text, nullable=False, server_default=""))
    op.add_column("turns", sa.Column("generation", sa.Integer, nullable=False, server_default="0"))
    has_pin = sa.column("pin") != ""
    for name, columns in (
        ("turns_by_pin", ["pin", "generation", "ordinal"]),
        ("turns_by_version", ["version", "opened_at"]),
    ):
        op.create_index(name, "turns", columns, sqlite_where=has_pin, postgresql_where=has_pin)
