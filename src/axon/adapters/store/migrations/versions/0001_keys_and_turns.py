"""Keys and turns. There is no way back: a rollback of the program reads newer tables, or a backup."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
    )
    turns = op.create_table(
        "turns",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("rank", sa.SmallInteger, nullable=False),
        sa.Column("deployment", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("prompt_tokens", sa.Integer, nullable=False),
        sa.Column("cached_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("retain", sa.Boolean, nullable=False),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_index("turns_by_rank", "turns", ["rank", "opened_at", "id"])
    kept = turns.c.body.is_not(None)
    op.create_index("turns_to_purge", "turns", ["retain", "ended_at"], sqlite_where=kept, postgresql_where=kept)
