"""Sessions: what a conversation is and holds beside its turns, where a turn stands in it, and what must stay erased."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # With a default in the database: a gateway of the release before writes neither of them.
    op.add_column("turns", sa.Column("ordinal", sa.Integer, nullable=False, server_default="0"))
    op.add_column("turns", sa.Column("previous", sa.Text, nullable=False, server_default=""))
    turns = sa.table("turns", sa.column("session"), sa.column("previous"))
    of_session, goes_on = turns.c.session != "", turns.c.previous != ""
    op.create_index(
        "turns_by_session",
        "turns",
        ["session", "ordinal"],
        sqlite_where=of_session,
        postgresql_where=of_session,
    )
    op.create_index("turns_by_previous", "turns", ["previous"], sqlite_where=goes_on, postgresql_where=goes_on)
    op.create_table(
        "conversations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("used_at", sa.Double, nullable=False),
        sa.Column("metadata", sa.LargeBinary, nullable=False),
    )
    op.create_index("conversations_by_use", "conversations", ["used_at"])
    op.create_table(
        "entries",
        sa.Column("conversation", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("added_at", sa.Double, nullable=False),
        sa.Column("items", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "hidden_items",
        sa.Column("conversation", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
    )
    op.create_table(
        "tombstones",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("erased_at", sa.Double, nullable=False),
    )
    op.create_index("tombstones_by_age", "tombstones", ["erased_at"])
